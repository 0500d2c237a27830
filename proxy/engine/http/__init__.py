"""HTTP streams: recorded, played and uploaded; HTTP/1 and HTTP/2 as they come."""
