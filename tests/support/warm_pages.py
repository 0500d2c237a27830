"""What `playhead ui` makes at its start: where it is forked this is imported, and it is made once."""

import playhead.proxy.pages.application
import playhead.proxy.pages.server
from playhead.web.render import warm_up

# The templates of all pages are compiled, for most of a second.
warm_up()
