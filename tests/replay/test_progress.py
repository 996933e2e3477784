"""Progress bars of what may take longer than a moment."""

import io

from samples import write_sample

import replay


def test_a_progress_bar_comes_where_reading_takes_a_moment(tmp_path, monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    for seed in range(3):
        write_sample(tmp_path / f"{seed}.jsonl", seed=seed)
    monkeypatch.setattr("sys.stderr", screen := Screen())
    replay.load(tmp_path, cache=False, progress=False)
    assert not screen.getvalue()
    monkeypatch.setattr("replay.progress.PATIENCE", 1e6)
    replay.load(tmp_path, cache=False)
    assert not screen.getvalue()
    monkeypatch.setattr("replay.progress.PATIENCE", 0.0)
    replay.load(tmp_path, cache=False)
    assert "reading logs" in screen.getvalue()
    replay.load(tmp_path, cache=False, progress=True)
    monkeypatch.setattr("sys.stderr", file := io.StringIO())
    replay.load(tmp_path, cache=False)
    assert not file.getvalue()  # which is no screen
