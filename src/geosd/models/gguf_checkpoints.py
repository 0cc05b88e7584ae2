"""Released checkpoints of one GGUF file, of the hub, a folder or a package, dequantised.

A file is read only after its SHA-256 is that of the settings. It is read as data: the package
`gguf` maps arrays and texts, and nothing in it is a program or a pickle.
"""

import importlib.util
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from geosd.files import sha256 as sha256_of
from geosd.models.load_and_save import load_causal_lm, load_no_broken_tensors
from geosd.models.released_models import DamagedReleaseError, ReleaseNotFoundError

FETCH_AGAIN = (
    "remove the file and fetch it again, or pin the new one as base.checkpoint.sha256 in"
    " params.yaml."
)
INSTALL_AGAIN = (
    "install the version that pyproject.toml and envs/install.sh name, or pin the new file in"
    " params.yaml."
)


def find_gguf_in_package(package: str, file: str) -> Path:
    """The GGUF file that an installed package carries.

    The package is located and not imported, so its dependencies are not needed.

    Raises:
        ReleaseNotFoundError: The package, its file, or the reader of GGUF is not installed.
    """
    places: Iterable[str] = ()
    with suppress(ImportError, ValueError):  # no name of a package
        spec = importlib.util.find_spec(package)
        places = (spec and spec.submodule_search_locations) or ()  # a module alone has none
    folder = next((Path(place) for place in places if Path(place, file).is_file()), None)
    if folder is None or not importlib.util.find_spec("gguf"):
        raise ReleaseNotFoundError(
            f"{file} of the Python package {package!r}, or the package 'gguf' that reads it, is not"
            " installed.\nHint: envs/install.sh smollm2 installs both; `make run STUDY=smollm2`"
            " does so by itself."
        )
    return folder / file


def find_gguf_in_folder(folder: Path, file: str) -> Path:
    """The GGUF file of a folder; ReleaseNotFoundError if it is not there."""
    path = folder / file
    if not path.is_file():
        raise ReleaseNotFoundError(
            f"{path}: no such file.\nHint: base.checkpoint.folder is the folder of that file;"
            " without this key the file is downloaded. For a folder of safetensors set"
            " base.checkpoint.file and sha256 to null."
        )
    return path


def download_gguf(repo: str, revision: str, file: str) -> Path:
    """Download one file of a repository of the hub at a commit, unless it is in the cache.

    Only that file is fetched, and the result is its path in the cache (HF_HOME, or HF_HUB_CACHE);
    ReleaseNotFoundError if it is not there and cannot be fetched.
    """
    cached = cached_gguf(repo, revision, file)
    if cached is not None:
        return cached
    try:
        return Path(huggingface_hub.hf_hub_download(repo, file, revision=revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ReleaseNotFoundError(
            f"{file} of {repo} at {revision} is not in the cache and cannot be fetched:"
            f" {type(error).__name__}: {error}\nHint: without network, fetch the file elsewhere"
            f" (`hf download {repo} {file} --revision {revision}`) and copy it, and name its folder"
            " as base.checkpoint.folder."
        ) from error


def cached_gguf(repo: str, revision: str, file: str) -> Path | None:
    """The path of a file of the hub in its cache; None where it is not there."""
    with suppress(LocalEntryNotFoundError):
        pinned = {"revision": revision, "local_files_only": True}
        return Path(huggingface_hub.hf_hub_download(repo, file, **pinned))
    return None


def load_gguf(
    path: Path, sha256: str, hint: str = FETCH_AGAIN
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the model of a GGUF file, its weights dequantised to float32, and its tokenizer.

    Other files of its folder are not read.

    Raises:
        ReleaseNotFoundError: The package that reads GGUF is not installed.
        DamagedReleaseError: The file has another hash; `hint` says what to do then.
        CheckpointError: The weights are not those of the architecture, or not finite.
    """
    if not importlib.util.find_spec("gguf"):
        raise ReleaseNotFoundError(
            f"{path}: the Python package 'gguf', which reads it, is not installed.\nHint:"
            " envs/install.sh gguf installs it; `make run` does so by itself."
        )
    got = sha256_of(path)
    if got != sha256:
        raise DamagedReleaseError(f"{path}: SHA-256 is {got}, expected {sha256}.\nHint: {hint}")
    with tempfile.TemporaryDirectory(prefix="geosd-gguf-") as scratch:
        # A tokenizer.json or an adapter in the same folder would be read, too, and has no hash.
        alone = Path(scratch)
        (alone / path.name).symlink_to(path.resolve())
        tokenizer = AutoTokenizer.from_pretrained(
            alone, gguf_file=path.name, local_files_only=True, trust_remote_code=False
        )
        read = load_causal_lm(alone, gguf_file=path.name)
    load_no_broken_tensors(read.named_parameters(), path)
    # The configuration must not say that the weights are quantized: the saved weights are plain.
    values = read.config.to_dict()
    values.pop("quantization_config", None)
    model = type(read)(type(read.config)(**values))
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    return model.float(), tokenizer
