"""Agents and fakes to try Playhead on; each folder is one story, shipped with the package.

Nothing here knows of Playhead: the agents are what a team would write, and the fakes are the services
they talk to, on loopback, each in its own process. `playhead demo` plays the story of `double_refund`.
"""
