"""The patterns behind the heads of the table of formats."""

from playhead.tape.redaction.finding.formats import Formats


def test_each_pattern_is_one() -> None:
    """They are made when they are first asked for, so a wrong one would be met while somebody records."""
    formats = Formats()
    assert all(way.pattern.groups for way in formats._ways)
    assert len(formats.heads) == len(formats._ways) + 2
