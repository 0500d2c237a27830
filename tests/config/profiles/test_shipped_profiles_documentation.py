"""The page of client profiles says what is shipped."""

import os
from pathlib import Path

from playhead.config.profiles.client_profile import Profile
from playhead.config.profiles.shipped_profiles import shipped_profiles

PAGE = Path(__file__).parents[3] / "docs" / "profiles.md"
BEGIN, END = "<!-- shipped -->\n", "<!-- /shipped -->\n"
HEAD = """| client | profile | tried with | known by product (and field or text) | left out, in part |
|---|---|---|---|---|
"""


def row(profile: Profile) -> str:
    """Say by what a client is known and what is left out, as the page does."""
    versions = sorted({place.evidence.client_version for place in profile.places})
    known = f"`{'`, `'.join(profile.products)}`"
    if profile.sends:
        known += f" and `{'`, `'.join(profile.sends)}`"
    if profile.says:
        known += f" and `{'` or `'.join(profile.says)}`"
    places = [f"`{text}`" for text in dict.fromkeys(place.text for place in profile.places)]
    places += [f"condition of `{entry.match.text}`" for entry in profile.unconditional]
    cells = (profile.client, f"`{profile.name}` {profile.version}", ", ".join(versions), known)
    return f"| {' | '.join(cells)} | {', '.join(places)} |\n"


def test_the_page_says_what_is_shipped() -> None:
    """Each profile with its places. Run with PLAYHEAD_WRITE_GOLDEN=1 to write it anew."""
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    wanted = f"{head}{BEGIN}\n{HEAD}{''.join(map(row, shipped_profiles()))}\n{END}{tail}"
    if os.environ.get("PLAYHEAD_WRITE_GOLDEN"):
        PAGE.write_text(wanted)
        return
    assert page == wanted
