"""A root file system with a bare Linux, in which somebody types what a page says, and nothing of ours is there yet.

Everything in it is the system's own. Three things stand in for what no test reaches: git takes the address of our
repository for a clone of this checkout (its last commit), `gh` makes the place to push to, and this machine's
certificates and pip's settings lead to the packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/eval-gate/eval-gate"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# in a process namespace of its own: what is started there ends with it
ENTER = """\
mount -t proc proc "$0/proc"
cd /
exec chroot "$0" env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  bash --norc -c 'cd && exec bash --norc'
"""
GH = """\
#!/bin/sh
case "$1 $2" in
"repo create")
  git init --quiet --bare /srv/origin.git
  git remote add origin /srv/origin.git
  git push --quiet --set-upstream origin main
esac
"""


@dataclass(frozen=True)
class RootSystem:
    """One of them, unpacked. It has to be entered by root."""

    path: Path

    @classmethod
    def unpack(cls, archive: Path, path: Path) -> RootSystem:
        """Unpack an archive that `.ci/bare` made, and let it reach what this machine reaches."""
        path.mkdir()
        subprocess.run(["tar", "--extract", "--file", archive, "--directory", path], check=True)
        settings = Path(os.environ.get("EVAL_GATE_PIP_CONF", "/etc/pip.conf"))
        for file in (CERTIFICATES, settings, Path("/etc/resolv.conf")):
            if file.is_file():
                inside = path / file.relative_to("/")
                inside.parent.mkdir(parents=True, exist_ok=True)
                inside.unlink(missing_ok=True)
                shutil.copy(file, inside)
        # an installer writes it, and an engine for containers
        (path / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        program = path / "usr/local/bin/gh"
        program.write_text(GH, encoding="utf-8")
        program.chmod(0o755)
        clone = path / "srv/eval-gate.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", "--no-local", CHECKOUT, clone], check=True)
        for words in (["update-ref", "refs/heads/main", "HEAD"], ["symbolic-ref", "HEAD", "refs/heads/main"]):
            subprocess.run(["git", "-C", clone, *words], check=True)
        (path / "etc/gitconfig").write_text(f'[url "file:///srv/eval-gate.git"]\n\tinsteadOf = {REPOSITORY}\n')
        return cls(path)

    @property
    def home(self) -> Path:
        """The folder in which a shell begins."""
        return self.path / "root"

    @property
    def origin(self) -> Path:
        """What `gh repo create` makes."""
        return self.path / "srv" / "origin.git"

    @property
    def shell(self) -> list[str]:
        """The words that open a shell in it."""
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, str(self.path)]
