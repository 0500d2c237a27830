"""One exchange read for people: as JSON, as a model call, with tokens and money."""
