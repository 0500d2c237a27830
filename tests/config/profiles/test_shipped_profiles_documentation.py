"""The page of client profiles says what is shipped."""

import os
from pathlib import Path

from playhead.config.profiles.client_profile import Profile
from playhead.config.profiles.shipped_profiles import shipped_profiles

PAGE = Path(__file__).parents[3] / "docs" / "profiles.md"
BEGIN, END = "<!-- shipped -->\n", "<!-- /shipped -->\n"


def row(profile: Profile) -> str:
    """Say by what a client is known and what is left out, as the page does."""
    versions = sorted({place.evidence.client_version for place in profile.places})
    sent = f" with the header field `{'`, `'.join(profile.sends)}`" if profile.sends else ""
    if profile.says:
        sent = f" with a body that says `{'` or `'.join(profile.says)}`"
    places = dict.fromkeys(place.text for place in profile.places)
    also = "".join(f", the condition of `{entry.match.text}`" for entry in profile.unconditional)
    return (
        f"* **{profile.client}**: `{profile.name}` {profile.version}, tried with {', '.join(versions)}."
        f" Known by `{'`, `'.join(profile.products)}`{sent}. Left out, in part: `{'`, `'.join(places)}`{also}.\n"
    )


def test_the_page_says_what_is_shipped() -> None:
    """Each profile with its places. Run with PLAYHEAD_WRITE_GOLDEN=1 to write it anew."""
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    wanted = f"{head}{BEGIN}\n{''.join(map(row, shipped_profiles()))}\n{END}{tail}"
    if os.environ.get("PLAYHEAD_WRITE_GOLDEN"):
        PAGE.write_text(wanted)
        return
    assert page == wanted
