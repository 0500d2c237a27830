"""What the scripted model says: tool calls, then a text. The same for every agent, whatever its tools are called.

The stage of a conversation is the number of turns in which the model called tools, as the request itself tells it. So the
provider keeps no state, and agents that ask several things at a time do not disturb each other.
"""

import json
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

API, GIT, MCP = "api.shop.example", "git.shop.example", "mcp.shop.example"
SITE = "www.shop.example"
FINAL = "All steps are done. The order is placed."
_COMMAND = ("command", "cmd", "commands", "script", "bash_command")
_PATH = ("file_path", "filePath", "absolute_path", "path", "filename", "file", "files", "paths")
_SHELLS = (
    *("bash", "shell", "exec_command", "run_shell_command", "execute_bash", "terminal"),
    *("run_command", "shell_command", "execute_command", "run_commands"),
)
_READERS = ("read", "read_file", "view", "read_files")
_ENDS = ("final_answer", "attempt_completion", "finish", "submit_and_exit")
_COMPLETE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True)
class Tool:
    """A tool that the agent offers."""

    name: str
    schema: dict[str, Any]
    is_code: bool = False
    """Whether it takes a program, in which the tools are functions, as Codex's `exec`."""


@dataclass(frozen=True)
class Asked:
    """A request to the model."""

    tools: tuple[Tool, ...]
    stage: int
    model: str
    stream: bool
    text: str
    """Everything that was sent, for what only the words tell."""
    schema: dict[str, Any] | None = None
    """Of the JSON that the answer has to be."""


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Said:
    """What the model answers."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def say(asked: Asked, work: PurePath) -> Said:
    """Give the next turn of the script.

    work: the agent's working folder, for tools that want absolute paths.
    """
    tools = {tool.name.lower(): tool for tool in asked.tools}
    shell = _first(tools, _SHELLS)
    if asked.schema is not None and "action" in asked.schema.get("properties", ()):
        return Said(json.dumps(_browse(asked)))
    if asked.schema is not None:
        return Said(json.dumps(example(asked.schema)))
    if "look_up" in tools:
        return _say_shop(asked, tools)
    program = next((tool for tool in asked.tools if tool.is_code and tool.name == "exec"), None)
    if shell is None and program is None:
        return Said(_without_tools(asked.text))
    turns = [
        ["cat notes.txt && sleep 0.2"],  # Qwen Code loses what a command says that ends at once
        [f"curl -sS https://{API}/items/1"],
        [
            f"git clone -q https://{GIT}/tool.git tool && cat tool/README",
            f"curl -sS -X POST -H 'content-type: application/json' -d '{{\"item\":1}}' https://{API}/orders",
        ],
    ]
    if asked.stage < len(turns):
        if shell is None:
            assert program is not None
            return Said("", (Call(program.name, {"input": _program(turns[asked.stage])}),))
        calls = [_fill(shell, _COMMAND, command) for command in turns[asked.stage]]
        reader = _first(tools, _READERS)
        if asked.stage == 0 and reader is not None:
            calls.append(_fill(reader, _PATH, str(work / "notes.txt")))
        return Said("", tuple(calls))
    end = _first(tools, _ENDS)
    if end is not None and shell is not None:
        return Said("", (_fill(end, tuple(end.schema.get("properties", ()))[:1], FINAL),))
    if shell is not None and _COMPLETE in asked.text and asked.stage == len(turns):
        return Said("", (_fill(shell, _COMMAND, _COMPLETE),))
    return Said(FINAL)


def _program(commands: list[str]) -> str:
    words = [f"tools.exec_command({{cmd: {json.dumps(command)}}})" for command in commands]
    return f"for (const one of await Promise.all([{', '.join(words)}])) text(one);"


def _browse(asked: Asked) -> dict[str, Any]:
    """Give a step of browser-use: its answers are JSON with the actions."""
    memory = "I have seen the page of the shop."
    action: dict[str, Any] = {"navigate": {"url": f"https://{SITE}/", "new_tab": False}}
    if memory in asked.text:
        action = {"done": {"text": FINAL, "success": True, "files_to_display": []}}
    thoughts = ("thinking", "evaluation_previous_goal", "next_goal")
    return {**dict.fromkeys(thoughts, "a step"), "memory": memory, "action": [action]}


def _say_shop(asked: Asked, tools: dict[str, Tool]) -> Said:
    """The turns of an agent whose tools are functions of its own program."""
    turns = [[("look_up", 1), ("read_notes", 0)], [("look_up", 2), ("place_order", 1)]]
    if asked.stage < len(turns):
        return Said(
            "",
            tuple(
                _fill(tools[name], ("number",), number)
                for name, number in turns[asked.stage]
                if name in tools
            ),
        )
    end = _first(tools, _ENDS)
    if end is not None:
        return Said("", (_fill(end, tuple(end.schema.get("properties", ()))[:1], FINAL),))
    return Said(FINAL)


def _first(tools: dict[str, Tool], names: tuple[str, ...]) -> Tool | None:
    return next((tools[name] for name in names if name in tools), None)


def _without_tools(text: str) -> str:
    if "SEARCH/REPLACE" in text:
        return "I add a line.\n\nnotes.txt\n```\n<<<<<<< SEARCH\none apple\n=======\none apple\ntwo pears\n>>>>>>> REPLACE\n```\n"
    return "A short answer"


def _fill(tool: Tool, names: tuple[str, ...], value: Any) -> Call:
    """Give a call whose property of one of these names has this value; what else is required gets an example."""
    properties: dict[str, Any] = tool.schema.get("properties", {})
    required = tool.schema.get("required", ())
    wanted = next((name for name in names if name in properties), None)
    arguments = {}
    for name, schema in properties.items():
        if name == wanted:
            arguments[name] = _shaped(value, schema, names, name)
        elif name in required:
            arguments[name] = example(schema)
    return Call(tool.name, arguments)


def _shaped(value: Any, schema: dict[str, Any], names: tuple[str, ...], name: str) -> Any:
    """Put a value in the form that a schema asks for: by itself, or in a list."""
    kinds = [schema, *schema.get("anyOf", ())]
    schema = next((one for one in kinds if one.get("type") == "array"), schema)
    if schema.get("type") != "array" or any(one.get("type") == "string" for one in kinds):
        return value
    inner = schema.get("items", {})
    inner = next((one for one in inner.get("anyOf", ()) if one.get("type") == "object"), inner)
    if inner.get("type") == "object":
        return [_fill(Tool("", inner), names, value).arguments]
    return ["bash", "-lc", value] if name == "command" else [value]


def example(schema: Any) -> Any:
    """Give the least that a schema takes."""
    if not isinstance(schema, dict):
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example(schema[key][0])
    kind = schema.get("type")
    kind = (kind[0] if isinstance(kind, list) else str(kind)).lower()
    match kind:
        case "object":
            properties = schema.get("properties", {})
            names = schema.get("required") or properties
            return {name: example(properties.get(name, {})) for name in names}
        case "array":
            return [example(schema.get("items", {}))] if schema.get("minItems") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
    return "a step"
