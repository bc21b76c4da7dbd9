import zipfile

import pytest


@pytest.fixture
def packed(tmp_path):
    """Write made-up files in a publisher's layout as a zip, and name the folder it lies in."""

    def pack(name, files):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, (text, encoding) in files.items():
                archive.writestr(path, text.encode(encoding))
        return tmp_path

    return pack
