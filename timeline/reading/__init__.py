"""One exchange for people: as JSON, as a model call, with tokens and money."""
