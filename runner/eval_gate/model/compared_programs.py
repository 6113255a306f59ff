"""Files that the programs of a run can load: graders, judges, hooks, health checks and the snapshot command. Pure."""

from collections.abc import Collection, Iterable

from eval_gate.model.base import Record


class ComparedFile(Record, kw_only=True):
    """One file, relative to the folder of the run, and the first 16 hex digits of a hash of its content.

    A path that ends with `/…` stands for all files below a folder.
    """

    path: str
    digest: str


class ComparedProgram(Record, kw_only=True):
    """One command, by a hash of its text and folder, and where it loads files from.

    A place that ends with `/` is a folder with all that is below it; any other is one file.
    """

    key: str
    places: tuple[str, ...] = ()


class ComparedPrograms(Record, kw_only=True):
    """All programs of a run and all files that these can load, each file once."""

    files: tuple[ComparedFile, ...] = ()
    programs: tuple[ComparedProgram, ...] = ()

    def get_files(self, keys: Iterable[str], left_out: Collection[str] = ()) -> dict[str, str]:
        """Return the digests, by path, of the files that these programs can load."""
        wanted = set(keys)
        places = {place for one in self.programs if one.key in wanted for place in one.places}
        folders = tuple(place for place in places if place.endswith("/"))
        return {
            file.path: file.digest
            for file in self.files
            if (file.path in places or file.path.startswith(folders)) and file.path not in left_out
        }


def merge_compared_programs(parts: Iterable[ComparedPrograms]) -> ComparedPrograms:
    """Merge what the parts of one run compared."""
    found = tuple(parts)
    files = {file.path: file for part in found for file in part.files}
    programs = {one.key: one for part in found for one in part.programs}
    return ComparedPrograms(
        files=tuple(files[path] for path in sorted(files)), programs=tuple(programs[key] for key in sorted(programs))
    )
