"""What a folder holds, as values: manifests, what differs between two of them, and what ignore files leave out."""
