"""The command that installs extras of tilepath, for errors about missing packages.

tilepath is in no package index, so ``pip install tilepath[geo]`` would install nothing, or another project.
"""

import json
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]


def install(*extras: str) -> str:
    """Return the command that installs `extras` from the place that tilepath was installed from."""
    names = ",".join(extras)
    if (ROOT / "pyproject.toml").is_file():
        return f"pip install -e {shlex.quote(f'{ROOT}[{names}]')}"
    from importlib.metadata import distribution

    installed = distribution("tilepath")
    if text := installed.read_text("direct_url.json"):  # PEP 610: of a wheel, an archive or a repository
        origin = json.loads(text)
        address = origin["url"]
        if vcs := origin.get("vcs_info"):
            address = f"{vcs['vcs']}+{address}@{vcs['commit_id']}"
        return f"pip install 'tilepath[{names}] @ {address}'"
    return f"pip install 'tilepath-{installed.version}-py3-none-any.whl[{names}]'"
