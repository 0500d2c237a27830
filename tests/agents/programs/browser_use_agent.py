"""browser-use with OpenAI's chat completions and the system's Chromium."""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from browser_use import Agent, Browser, ChatOpenAI


async def main(task: str) -> None:
    """Have the agent look at the shop's page."""
    # Debian's Chromium begins with a page of its search engine, and leaves it at any time.
    profile = Path(tempfile.mkdtemp())
    (profile / "Default").mkdir()
    blank = {"session": {"restore_on_startup": 4, "startup_urls": ["about:blank"]}}
    (profile / "Default" / "Preferences").write_text(json.dumps(blank))
    browser = Browser(
        user_data_dir=profile,
        executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
        headless=True,
        chromium_sandbox=False,
        enable_default_extensions=False,
        args=["--ignore-certificate-errors"],
    )
    agent = Agent(task=task, llm=ChatOpenAI(model="gpt-4o"), browser=browser, use_vision=False)
    print((await agent.run(max_steps=5)).final_result())


asyncio.run(main(f"{sys.argv[1]} {Path('notes.txt').read_text()}"))
