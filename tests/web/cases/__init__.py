"""The cases that the page is built to, as data, and what brings them before it. They are written from the documents alone."""
