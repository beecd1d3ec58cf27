"""Run the notebook of examples/ and keep its results: `python tools/notebook.py` (needs nbclient and ipykernel)."""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "quickstart.ipynb"


def main(path: Path = NOTEBOOK) -> None:
    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # Progress is not kept, nor the plain text of a run, which names a temporary folder.
            cell.outputs = [each for each in cell.outputs if each.output_type == "execute_result"]
            for each in cell.outputs:
                if each.data.get("text/plain", "").startswith("Run("):
                    del each.data["text/plain"]
    nbformat.write(notebook, path)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
