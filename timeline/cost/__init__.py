"""What runs cost: each request on the wire once, with tokens as stated and money by a price table."""
