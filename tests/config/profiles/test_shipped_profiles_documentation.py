"""The page of client profiles says what is shipped."""

import os
from pathlib import Path

from playhead.config.profiles.client_profile import Profile
from playhead.config.profiles.shipped_profiles import shipped_profiles

PAGE = Path(__file__).parents[3] / "docs" / "profiles.md"
BEGIN, END = "<!-- shipped -->\n", "<!-- /shipped -->\n"


def table(profile: Profile) -> str:
    """List the places of a profile, as the page does."""
    versions = sorted({place.evidence.client_version for place in profile.places})
    sent = f" with the header field `{'`, `'.join(profile.sends)}`" if profile.sends else ""
    if profile.says:
        sent = f" with a body that says `{'` or `'.join(profile.says)}`"
    lines = [
        f"### {profile.client}",
        "",
        f"`{profile.name}` {profile.version}, tried with {', '.join(versions)}. Known by `{'`, `'.join(profile.products)}`{sent}.",
        "",
        "| place | left out |",
        "|---|---|",
        *(f"| `{place.text}` | {place.evidence.reason} |" for place in profile.places),
        *(
            f"| `{entry.match.text}` | its condition: {entry.evidence.reason} |"
            for entry in profile.unconditional
        ),
    ]
    return "\n".join(lines) + "\n"


def test_the_page_says_what_is_shipped() -> None:
    """Each profile with its places and reasons. Run with PLAYHEAD_WRITE_GOLDEN=1 to write it anew."""
    page = PAGE.read_text("utf-8")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    wanted = f"{head}{BEGIN}\n{'\n'.join(map(table, shipped_profiles()))}\n{END}{tail}"
    if os.environ.get("PLAYHEAD_WRITE_GOLDEN"):
        PAGE.write_text(wanted)
        return
    assert page == wanted
