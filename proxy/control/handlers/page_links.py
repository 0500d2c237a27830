"""Links to the pages, which another process serves."""

from collections.abc import Awaitable, Callable

from ..http.route import Answer, Call


def link_maker(make_link: Callable[[], str]) -> Callable[[Call], Awaitable[Answer]]:
    """Give what answers with a link."""

    async def make(_: Call) -> Answer:
        return Answer({"path": make_link()})

    return make
