"""WebVTT files as a browser reads them: Chromium has a reader of its own."""

import json

import pytest
from browsers import open_blank

from keras_transformer.tasks.speech_recognition.segments import Segment
from keras_transformer.tasks.speech_recognition.subtitles import webvtt

TEXTS = ["a --> b", "x & <i>y</i> &lt; é猫", "one\n\ntwo", "", "NOTE", "WEBVTT", "STYLE x"]
SHOWN = ["a --> b", "x & <i>y</i> &lt; é猫", "one two", "NOTE", "WEBVTT", "STYLE x"]


@pytest.mark.slow
def test_a_track_has_the_texts_and_times(browser, site):
    segments = [Segment(n / 4, n / 4 + 0.2, text) for n, text in enumerate(TEXTS)]
    segments.append(Segment(360_000.0, 360_001.5, "late"))
    (site / "track.vtt").write_text(webvtt(segments), "utf-8")
    open_blank(browser, site)
    code = """new Promise((resolve, reject) => {
        const track = document.createElement("track"), video = document.createElement("video");
        Object.assign(track, { kind: "subtitles", src: "track.vtt", default: true });
        track.onerror = () => reject(new Error("not read"));
        track.onload = () => resolve(Array.from(track.track.cues, (cue) =>
            [cue.startTime, cue.endTime, cue.getCueAsHTML().textContent]));
        video.append(track);
        document.body.append(video);
        track.track.mode = "showing";
    })"""
    cues = browser.evaluate(code)
    kept = [one for one in segments if one.text]
    times = [[one.start, pytest.approx(one.end)] for one in kept]
    expected = [[*pair, text] for pair, text in zip(times, [*SHOWN, "late"], strict=True)]
    assert cues == expected, json.dumps(cues)
