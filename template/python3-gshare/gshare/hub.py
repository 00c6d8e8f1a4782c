"""Weights from a Hugging Face repository, through its own cache. Code from a repository is never run."""

from __future__ import annotations

from pathlib import Path

from gshare.errors import WeightsError
from gshare.gnmt_checkpoint import CODES, ENTRIES

FILES = (
    "config.json",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    CODES,
    ENTRIES,
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
)
"""What is taken of a repository; no pickles, no code, no variants for other frameworks."""


def hub_folder(repo: str, revision: str, *, token: str | None) -> Path:
    """The folder of one revision in the hub's cache, downloaded where it is not there yet.

    HF_HOME and HF_HUB_OFFLINE are honoured by the hub's own library.

    Raises:
        WeightsError: no such repository or revision, no access, no network.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    name = f"hf:{repo}@{revision}"
    try:
        return Path(snapshot_download(repo, revision=revision, allow_patterns=list(FILES), token=token))
    except GatedRepoError as error:
        raise WeightsError(f"{name}: access is restricted; give the function a secret hf-token that has it") from error
    except RevisionNotFoundError as error:
        raise WeightsError(f"{name}: no such revision; name a branch, tag or commit of {repo}") from error
    except RepositoryNotFoundError as error:
        raise WeightsError(f"{name}: no such repository; a private one needs the secret hf-token") from error
    except LocalEntryNotFoundError as error:
        raise WeightsError(
            f"{name}: not in the local cache and the hub cannot be reached (or HF_HUB_OFFLINE is set); "
            "download it once, or set weights to random:0"
        ) from error
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise WeightsError(f"{name}: {error}") from error
