"""The web pages: they contain no data, and load everything with a token."""

from ....web import load_page
from ..http.route import HTML, Answer, Call


async def gates(_: Call) -> Answer:
    """Give the page on which held requests are decided on."""
    page = load_page("gates")
    return Answer(page.text, kind=HTML, headers={"content-security-policy": page.policy})
