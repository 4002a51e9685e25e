"""Commands around studies: what editors and authors need, and care for folders and machine."""

from vitbench.cli.app import app


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, for editors."""
    import json

    from vitbench.study.json_schema import study_schema

    print(json.dumps(study_schema(), indent=1))
