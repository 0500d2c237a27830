"""What `playhead ui` makes at its start: where it is forked this is imported, and it is made once."""

from playhead.web.render import warm_up

# The templates of all pages are compiled, for most of a second.
warm_up()
