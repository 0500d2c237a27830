"""What a process of ours makes with its first request: where they are forked this is imported, and it is made once."""

from playhead.config import Config
from playhead.tape.classify.by_method_and_url import classify

# Every pattern of the shipped rules is compiled.
classify("POST", "https", "host.test", 443, "/path", Config().classes)
