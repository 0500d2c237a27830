"""A schema in a file of its own: JSON by the name `.json`, else YAML, bounded like a configuration."""

from pathlib import Path

from .document import Faults, parse_document
from .errors import ConfigError
from .safe_json_schema import MAX_SCHEMA, BadSchema, compile_schema


def read_schema(path: Path) -> str:
    """Read a schema from a file; gives it as JSON.

    Raises: ValueError, whose text names the file and the place in it.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SCHEMA + 1)
    except FileNotFoundError:
        raise ValueError(
            f"no such file: {path}; expected a JSON Schema, or a file that holds one"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path} cannot be read: {reason}") from None
    if len(data) > MAX_SCHEMA:
        raise ValueError(
            f"{path} is longer than {MAX_SCHEMA} bytes, which is more than a schema may be"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    return _read_json(text, path) if path.suffix == ".json" else _read_yaml(text, path)


def _read_json(text: str, path: Path) -> str:
    try:
        compile_schema(text)
    except BadSchema as error:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path)
        where = f", ${place}" if place else ""
        raise ValueError(f"{path}{where}: no JSON Schema: {error}") from None
    return text


def _read_yaml(text: str, path: Path) -> str:
    faults = Faults(str(path))
    try:
        value = parse_document(text, faults)
        if value is None:
            raise ValueError(f"{path} is empty; expected a JSON Schema")
        schema = value.json()
        try:
            compile_schema(schema)
        except BadSchema as error:
            value.find(error.path).fault(f"no JSON Schema: {error}")
        faults.raise_any()
    except ConfigError as error:
        raise ValueError(str(error.faults[0])) from None
    return schema
