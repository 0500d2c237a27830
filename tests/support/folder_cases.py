"""What may stand in a working folder, and what a recording and a replay make of it: tables, written before the code.

`tests/proxy/folder/` runs `CONTENTS`, `PLACES`, `WRITES` and `DIFFERENCES` row by row. `REFUSALS` is a list of what is to be thought of:
each row has a test under a name of its own, there and in `tests/journeys/test_folder.py`. Sources: overlayfs (Linux,
filesystems/overlayfs.rst), inode(7), gitignore(5), gitrepository-layout(5).
"""

from typing import NamedTuple


class Content(NamedTuple):
    """Something in a folder: is it in the manifest, is its content saved, does it come back in a replay?"""

    name: str
    manifest: str
    """`kind` as it is listed; empty where it is left out."""
    saved: str
    """`yes`, or why its content is not."""
    restored: bool
    """Whether a replay after it was changed finds it as it was at the start."""


CONTENTS = (
    Content("a file", "file", "yes", True),
    Content("an empty file", "file", "yes", True),
    Content("a program, with its mode", "file", "yes", True),
    Content("a file that cannot be written to", "file", "yes", True),
    Content("a file whose name is not UTF-8", "file", "yes", True),
    Content("a file with a line feed in its name", "file", "yes", True),
    Content("a file with a comma, a colon and a backslash in its name", "file", "yes", True),
    Content("a file of bytes that are no text", "file", "yes", True),
    Content("an empty folder", "folder", "yes", True),
    Content("a folder in a folder", "folder", "yes", True),
    Content("a link to a file", "link", "yes", True),
    Content("a link to nothing", "link", "yes", True),
    Content("a link out of the folder, which is not followed", "link", "yes", True),
    Content("a link to a folder, which is not entered", "link", "yes", True),
    Content("two names of one file", "file", "yes", True),
    Content("a named pipe, which is not opened", "pipe", "no file", False),
    Content("a socket", "socket", "no file", False),
    Content("a file that cannot be read", "file", "unreadable", False),
    Content("a file over the limit", "file", "too large", False),
    Content("a file with a secret", "file", "secret", False),
    Content("an ignored file", "", "ignored", False),
    Content("an ignored folder, which is not entered", "", "ignored", False),
    Content("a file that a deeper ignore file lets in again", "file", "yes", True),
    Content("a file that is tracked by git although it is ignored", "file", "yes", True),
    Content("a repository, with its index, refs and objects", "folder", "yes", True),
    Content("a repository in the repository", "folder", "yes", True),
    Content("a submodule, whose .git is a file", "folder", "yes", True),
    Content("the store itself", "", "Playhead's own", False),
)


class Place(NamedTuple):
    """Where a working folder is."""

    name: str
    covered: str
    """What of the machine the command works on a copy of: `folder`, `repository`, `nothing`."""
    otherwise: str = ""
    """What is said where it cannot be as asked for."""


PLACES = (
    Place("a folder on a disk", "folder"),
    Place("a folder on tmpfs", "folder"),
    Place(
        "a folder on overlayfs, as in a container: the upper layer goes to another disk", "folder"
    ),
    Place(
        "a folder on overlayfs, and every other disk too: the upper layer is in memory",
        "folder",
        "kept in memory: no overlay elsewhere (EINVAL: Invalid argument",
    ),
    Place(
        "a folder on overlayfs, and nothing else: a copy, with its cost",
        "folder",
        "no overlay here (EINVAL: Invalid argument",
    ),
    Place("a folder below the root of its repository: git writes above it", "repository"),
    Place("a work tree whose repository is elsewhere", "repository"),
    Place(
        "a folder with another file system mounted in it: an overlay of a user's cannot be over both, so a copy",
        "folder",
        "no overlay here (EINVAL: Invalid argument",
    ),
    Place("a folder that is mounted at a second place", "folder"),
    Place("a folder that can be read only", "folder"),
    Place("a folder with a comma and a colon in its path", "folder"),
    Place("the home folder", "folder"),
    Place("a home folder that is a repository, below it the working folder", "folder"),
    Place("the root folder", "nothing", "the root folder cannot be a copy"),
)


class Write(NamedTuple):
    """What a command does to its folder, and the effects that the receipt lists of it."""

    name: str
    program: str
    """Python, run in a folder with: keep.txt, edit.txt, run.sh (0755), sub/a.txt, sub/b.txt, empty/, link -> keep.txt."""
    effects: tuple[str, ...]
    """`created PATH`, `changed PATH`, `deleted PATH`, sorted; folders end with a slash."""
    by_copy: bool = False
    """Whether an overlay of an ordinary user refuses it (EXDEV), so that it is tried on a copy alone."""


WRITES = (
    Write("nothing", "pass", ()),
    Write("a new file", "open('new.txt', 'w').write('x')", ("created new.txt",)),
    Write(
        "a new file in a new folder",
        "os.mkdir('d'); open('d/x', 'w').close()",
        ("created d/", "created d/x"),
    ),
    Write("another content", "open('edit.txt', 'w').write('else')", ("changed edit.txt",)),
    Write(
        "another content of the same size",
        "open('edit.txt', 'w').write('EDIT')",
        ("changed edit.txt",),
    ),
    Write(
        "the same content once more",
        "s = open('edit.txt').read(); open('edit.txt', 'w').write(s)",
        (),
    ),
    Write("opened to append, and nothing written", "open('edit.txt', 'a').close()", ()),
    Write("another time alone", "os.utime('edit.txt', (1, 1))", ()),
    Write("another mode alone", "os.chmod('edit.txt', 0o755)", ("changed edit.txt",)),
    Write("a file removed", "os.unlink('edit.txt')", ("deleted edit.txt",)),
    Write(
        "a file removed and made again",
        "os.unlink('edit.txt'); open('edit.txt', 'w').write('edit')",
        (),
    ),
    Write("a file made and removed again", "open('t', 'w').close(); os.unlink('t')", ()),
    Write(
        "a file renamed",
        "os.rename('edit.txt', 'was.txt')",
        ("created was.txt", "deleted edit.txt"),
    ),
    Write(
        "a file put in the place of another",
        "os.rename('edit.txt', 'keep.txt')",
        ("changed keep.txt", "deleted edit.txt"),
    ),
    Write(
        "a folder removed",
        "shutil.rmtree('sub')",
        ("deleted sub/", "deleted sub/a.txt", "deleted sub/b.txt"),
    ),
    Write(
        "a folder removed and made again with less in it (opaque)",
        "shutil.rmtree('sub'); os.mkdir('sub'); open('sub/a.txt', 'w').write('a')",
        ("deleted sub/b.txt",),
    ),
    Write(
        "a folder in the place of a file",
        "os.unlink('edit.txt'); os.mkdir('edit.txt'); open('edit.txt/x', 'w').close()",
        ("created edit.txt/", "created edit.txt/x", "deleted edit.txt"),
    ),
    Write(
        "a file in the place of a folder",
        "shutil.rmtree('sub'); open('sub', 'w').close()",
        ("created sub", "deleted sub/", "deleted sub/a.txt", "deleted sub/b.txt"),
    ),
    Write(
        "a folder renamed",
        "os.rename('sub', 'moved')",
        (
            "created moved/",
            "created moved/a.txt",
            "created moved/b.txt",
            "deleted sub/",
            "deleted sub/a.txt",
            "deleted sub/b.txt",
        ),
        by_copy=True,
    ),
    Write("a new empty folder", "os.mkdir('d')", ("created d/",)),
    Write("an empty folder removed", "os.rmdir('empty')", ("deleted empty/",)),
    Write("a new link", "os.symlink('/etc/passwd', 'l')", ("created l",)),
    Write(
        "a link that leads elsewhere",
        "os.unlink('link'); os.symlink('edit.txt', 'link')",
        ("changed link",),
    ),
    Write(
        "a file in the place of a link",
        "os.unlink('link'); open('link', 'w').close()",
        ("changed link",),
    ),
    Write("a second name for a file", "os.link('edit.txt', 'two.txt')", ("created two.txt",)),
    Write("a named pipe", "os.mkfifo('pipe')", ("created pipe",)),
    Write("a socket", "socket.socket(socket.AF_UNIX).bind('sock')", ("created sock",)),
    Write("a name that is not UTF-8", "open(b'\\xff.txt', 'w').close()", ("created \\xff.txt",)),
)


class Refusal(NamedTuple):
    """Bad input: what is said, and what stays as it is."""

    name: str
    says: str


REFUSALS = (
    Refusal("no overlay here: which fallback, its error number and its cost", "works on a copy"),
    Refusal("no namespace here, and --files overlay was asked for: nothing is run", "no overlay"),
    Refusal("too many files to list: what was left out, before the command starts", "left out"),
    Refusal("too much content to save: what was left out, before the command starts", "left out"),
    Refusal("no room for the upper layer: the command gets ENOSPC, the receipt says so", "no room"),
    Refusal("a restore over uncommitted work: refused without --force", "--force"),
    Refusal("a restore into a folder that is none", "is no folder"),
    Refusal("a run without a manifest", "has no manifest"),
    Refusal("a step that has no savepoint: the one before it is named", "savepoint"),
    Refusal("content that was not saved", "was not saved"),
    Refusal(
        "content in the store that does not fit its hash: nothing is written",
        "does not fit its hash",
    ),
    Refusal("--keep-writes where the folder was put back first", "--keep-writes"),
    Refusal("--transaction with a command in a container", "container"),
)


class Hidden(NamedTuple):
    """Work that came after a savepoint, at a path that a listing of now leaves out: a restore is refused, and names it."""

    name: str
    program: str
    """Python, run in a folder as that of `Write` that was listed before."""
    work: str
    """The path that is named."""
    stays: bool = False
    """Whether it is in no manifest, so that it stays even with `--force`."""


HIDDEN = (
    Hidden(
        "a file that is ignored by now",
        "open('.gitignore', 'w').write('edit.txt'); open('edit.txt', 'w').write('work')",
        "edit.txt",
    ),
    Hidden(
        "a file in a folder that is ignored by now",
        "open('.gitignore', 'w').write('sub/'); open('sub/a.txt', 'w').write('work')",
        "sub/a.txt",
    ),
    Hidden(
        "a file below a folder with a name that is always ignored",
        "os.unlink('keep.txt'); os.makedirs('keep.txt/node_modules'); open('keep.txt/node_modules/x', 'w').write('work')",
        "keep.txt/node_modules/x",
        stays=True,
    ),
    Hidden(
        "an ignored file in the place of a folder",
        "shutil.rmtree('sub'); open('sub', 'w').write('work'); open('.gitignore', 'w').write('sub')",
        "sub",
    ),
    Hidden(
        "a file in an ignored folder in the place of a file",
        "os.unlink('edit.txt'); os.mkdir('edit.txt'); open('edit.txt/x', 'w').write('work'); open('.gitignore', 'w').write('edit.txt')",
        "edit.txt/x",
        stays=True,
    ),
    Hidden(
        "an ignored file in a folder in the place of a link",
        "os.unlink('link'); os.mkdir('link'); open('link/x.log', 'w').write('work'); open('.gitignore', 'w').write('*.log')",
        "link/x.log",
        stays=True,
    ),
)


class Difference(NamedTuple):
    """What is no longer as it was when a recording began, and what `replay` says of it first."""

    name: str
    says: str


DIFFERENCES = (
    Difference("nothing", ""),
    Difference("another content", "changed edit.txt"),
    Difference("a file is gone", "gone edit.txt"),
    Difference("a file is new", "new new.txt"),
    Difference("another mode", "changed run.sh"),
    Difference("a file was touched, with the same content", ""),
    Difference("an ignored file is new", ""),
    Difference("another commit", "commit"),
    Difference("another branch of the same commit", "branch"),
    Difference("another folder", "another folder"),
)


class Journey(NamedTuple):
    """A way on which a recording leaves its store and comes back, and what is there of its folder then."""

    name: str
    contents: str
    """`all`, or why some are not there."""


JOURNEYS = (
    Journey("exported, and imported into another store", "all"),
    Journey("exported with the run that plays it: contents are in the file once", "all"),
    Journey("two recordings with the same content, imported one after the other", "all"),
    Journey("archived, and restored", "all"),
    Journey("archived, and exported from there", "all"),
    Journey("archived with another run of the same content, which is then erased", "all"),
    Journey("from an encrypted store into one that is not", "all"),
    Journey("a recording whose contents were not saved", "none was saved"),
    Journey("a file with a secret", "secret"),
    Journey("an empty file, and one that is larger than a piece", "all"),
    Journey("rewritten by a new rule, then archived or exported", "all, with placeholders"),
)


class Forged(NamedTuple):
    """A manifest in a tape file that somebody made on purpose: nothing is imported."""

    name: str
    path: bytes
    says: str


FORGED = (
    Forged("a path from the root", b"/etc/passwd", "no path"),
    Forged("a path that leads up", b"../x", "no path"),
    Forged("a path that leads up on its way", b"sub/../../x", "no path"),
    Forged("a path with nothing between two slashes", b"sub//x", "no path"),
    Forged("a path that is the folder", b".", "no path"),
    Forged("an empty path", b"", "no path"),
    Forged("a path with a zero byte", b"a\0b", "no path"),
    Forged("a path longer than any", b"x" * 5000, "no path"),
    Forged("a path below a link", b"link/x", "no folder"),
    Forged("a path below a file", b"a/x", "no folder"),
    Forged("a path below a folder that is not listed", b"none/x", "no folder"),
)
"""Each beside `a`, a file, and `link`, a link to `/etc`. Set-uid bits are taken away, and numbers of inodes forgotten, without a word."""


class Rewritten(NamedTuple):
    """What stands where a rule that was learned later finds something, after `playhead redact --rewrite`."""

    name: str
    becomes: str


REWRITTEN = (
    Rewritten("a file of text", "the same with a placeholder, which a restore names"),
    Rewritten("a file that a savepoint has and the start has not", "the same with a placeholder"),
    Rewritten("an object of git that unpacks to it", "no content: secret"),
    Rewritten("the target of a link", "the target with a placeholder"),
    Rewritten("the name of a file", "the name with a placeholder"),
    Rewritten("the name of a branch, or of a changed file", "the name with a placeholder"),
    Rewritten("a content that another run needs, which is not rewritten", "stays for that run"),
    Rewritten("nothing", "as it was, byte by byte"),
)
