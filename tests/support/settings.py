"""A configuration file that is edited while a proxy reads it."""

from pathlib import Path

from playhead.store import RunInfo, Store


class Settings:
    """A YAML file in a folder, and the store beside it."""

    def __init__(self, folder: Path, text: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "playhead.yaml"
        self.store = folder / "store"
        self.write(text)

    def write(self, text: str) -> None:
        """Save it as an editor does: written beside, then renamed."""
        made = self.path.with_suffix(".new")
        made.write_text(text)
        made.rename(self.path)

    def change(self, word: str, other: str) -> None:
        """Change one word, in place."""
        text = self.path.read_text()
        assert text.count(word) == 1
        self.path.write_text(text.replace(word, other))

    @property
    def flags(self) -> tuple[str, ...]:
        """What `playhead serve` is given."""
        return ("-c", str(self.path), "--store", str(self.store), "--listen", "127.0.0.1:0")

    def runs(self) -> list[RunInfo]:
        """List the runs of the store, oldest first."""
        with Store.open(self.store, readonly=True) as store:
            return store.runs.all()

    def statuses(self) -> dict[str, str]:
        """Give the status of each run."""
        return {run.id: run.status.value for run in self.runs()}
