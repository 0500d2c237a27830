"""The working folder of a command: what it holds, a copy of it for each execution, and savepoints.

Each module has one part of it:

    command_folders.py       which folders a command works in: its folder, and the repository that git would write to
    list_folder.py           lists what is in a folder, by ignore files and within limits
    left_out_paths.py        looks at single paths that a listing left out
    git.py                   asks git where a repository stands, without running what a repository names
    file_contents.py         hashes and reads files that nobody has touched since they were listed
    overlay_layers.py        what is in layers of overlayfs: the effects of a command, and layers made from manifests
    restore.py               makes a folder what a manifest says, writing only what differs
    unsaved_entries.py       finds what has no content to keep, as links, and no run has
    put_and_remove_files.py  puts files into their places; what came to a place meanwhile stays
    copying.py               copies a folder, sharing blocks where the file system can
    hard_links.py            files with several names in a folder, which a copy keeps together
    overlay_support.py       tries where an overlay works, and says why it does not
    execution_folder.py      one call: a fresh folder for an execution, as it is or as it was at a step
    recording.py             what a recording keeps of its folder
    savepoints.py            savepoints before effects

What is read of a folder, and of the layers that a command has written, is hostile: no link is followed.
"""
