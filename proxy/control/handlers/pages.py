"""Links to the pages, which another process serves."""

from collections.abc import Awaitable, Callable

from ..http.route import Answer, Call


def link_maker(make_link: Callable[[], tuple[str, str]]) -> Callable[[Call], Awaitable[Answer]]:
    """Give what answers with a link."""

    async def make(_: Call) -> Answer:
        path, host = make_link()
        return Answer({"path": path, "host": host or None})

    return make
