"""The working folder of a command: what it holds, a copy of it for each execution, and savepoints.

Each module has one part of it:

    area.py         which folders a command works in: its folder, and the repository that git would write to
    look.py         lists what is in a folder, by ignore files and within limits
    closer.py       looks at single paths that a listing left out
    git.py          asks git where a repository stands, without running what a repository names
    contents.py     hashes and reads files that nobody has touched since they were listed
    layers.py       what is in layers of overlayfs: the effects of a command, and layers made from manifests
    restore.py      makes a folder what a manifest says, writing only what differs
    kept_entries.py finds what has no content to keep, as links, and no run has
    putting.py      puts files into their places; what came to a place meanwhile stays
    copying.py      copies a folder, sharing blocks where the file system can
    links.py        files with several names in a folder, which a copy keeps together
    overlay.py      tries where an overlay works, and says why it does not
    execution.py    one call: a fresh folder for an execution, as it is or as it was at a step
    recording.py    what a recording keeps of its folder
    savepoints.py   savepoints before effects

What is read of a folder, and of the layers that a command has written, is hostile: no link is followed.
"""
