"""Series from CSV files: periods, the history before them, and one line for every mistake."""

import dataclasses
import datetime
import types

import numpy as np
import pytest

from keras_transformer.tasks.time_series.table_format import TableFormat
from keras_transformer.training.settings.sources import open_source

FIRST = datetime.date(2001, 2, 26)
DAYS = 12


def lines(**changes):
    """Returns a header and twelve days around the end of February; `changes` by line number."""
    made = ["date,rain,noise,warmth,flow"]
    for day in range(DAYS):
        flow = "" if day == 8 else day + 0.5
        made.append(f"{FIRST + datetime.timedelta(day)},{day},x,{-day},{flow}")
    for number, line in changes.items():
        made[int(number[1:]) - 1] = line
    return [line for line in made if line is not None]


def day(number):
    return FIRST + datetime.timedelta(number)


def settings(folder, content=None, **changes):
    path = folder / "river.csv"
    path.write_text("\n".join(lines() if content is None else content) + "\n")
    values = {
        "source": "series",
        "file": str(path),
        "date_column": "date",
        "inputs": ["warmth", "rain"],
        "target": "flow",
        "snow": [],
        "train": [day(2), day(5)],
        "validation": [day(6), day(9)],
        "test": None,
        "window": 4,
        "scored": 2,
        **dict.fromkeys(("separator", "decimal", "date_order", "step", "fill")),
        "fill_limit": 3,
    }
    return types.SimpleNamespace(**{**values, **changes})


def rows(source, split):
    inputs, target = zip(*source.rows(split).as_numpy_iterator(), strict=True)
    return np.array(inputs), np.array(target)


def test_a_split_is_its_days_and_the_history_before_it(tmp_path):
    source = open_source(settings(tmp_path))
    inputs, target = rows(source, "validation")
    np.testing.assert_array_equal(inputs, [[-day, day] for day in range(3, 10)])
    nan = np.nan
    np.testing.assert_array_equal(target, [nan, nan, nan, 6.5, 7.5, nan, 9.5])
    assert source.count("validation") == 4 and source.splits == ("train", "validation")


def test_at_the_start_of_the_file_a_split_has_less_history(tmp_path):
    inputs, target = rows(open_source(settings(tmp_path)), "train")
    np.testing.assert_array_equal(inputs[:, 1], range(6))
    np.testing.assert_array_equal(target, [np.nan, np.nan, 2.5, 3.5, 4.5, 5.5])


def test_the_model_gets_names_and_scales_from_the_data(tmp_path):
    metadata = open_source(settings(tmp_path)).metadata()
    sizes = {"max_length": 4, "scored": 2}
    table = dataclasses.asdict(TableFormat(date_column="date", step="1 day", fill_limit=3))
    expected = {"inputs": ("warmth", "rain"), "target": "flow", "snow": (), "table": table}
    assert metadata == {**expected, **sizes}
    snow = ["rain", "warmth"]
    assert open_source(settings(tmp_path, snow=snow)).metadata()["snow"] == ("rain", "warmth")


def test_a_byte_order_mark_and_spaces_are_ignored(tmp_path):
    content = lines(_1="\ufeffdate, rain ,noise,warmth,flow", _3=f"{day(1)} , 1,x, -1 , 1.5")
    inputs, _ = rows(open_source(settings(tmp_path, content)), "train")
    np.testing.assert_array_equal(inputs[:, 1], range(6))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_1": "date,rain,flow"}, "river.csv, line 1: the header must have the columns date, "
         "warmth, rain, flow, with a comma between two. Missing: warmth."),
        ({"_1": "date,rain,rain,warmth,flow"}, "river.csv, line 1: the column rain must occur "
         "once. Received: columns 2 and 3 have this name."),
        ({"_5": None}, "line 5: every line must be 1 day after the previous one, here 2001-03-01"
         ". Received: 2001-03-02. `data.fill` fills gaps."),
        ({"_5": f"{FIRST},1,x,1,1"}, "line 5: every line must be 1 day after .* 2001-02-26."),
        ({"_4": "1 March,1,x,1,1"}, "line 4: the date must look like 2005-08-31, .*. Received: '1 "
         "March'."),
        ({"_4": "2001-02-30,1,x,1,1"}, "line 4: the date must look like .*Received: '2001-02-3"),
        ({"_4": f"{day(2)},1_0,x,1,1"}, "line 4: rain must be a number. Received: '1_0'."),
        ({"_4": f'{day(2)},"1,x,1,1'}, "line 4: must have 5 columns with a comma .*: 2."),
        ({"_4": f"{day(2)},,x,1,1"}, "line 4: rain must be a number. Received: ''."),
        ({"_4": f"{day(2)},1e39,x,1,1"}, "line 4: rain must be a number. Received: '1e39'."),
        ({"_4": f"{day(2)},1,x,warm,1"}, "line 4: warmth must be a number. Received: 'warm'."),
        ({"_4": f"{day(2)},1,x,1,nan"}, "line 4: flow must be a number or empty. Received: 'nan'."),
        ({"_4": f"{day(2)},1,x,1"}, "line 4: must have 5 columns with a comma between them, "
         "including date, warmth, rain, flow. Received: 4."),
    ],
)  # fmt: skip
def test_a_wrong_line_is_reported(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(settings(tmp_path, lines(**changes)))
    assert "\n" not in str(error.value) and str(tmp_path) in str(error.value)


def test_a_missing_period_is_reported(tmp_path):
    message = "`data.test` must be a period in .*river.csv, which covers 2001-02-26 to 2001-03-09"
    last = datetime.date.max
    for days in ([day(3), day(12)], [day(-1), day(2)], [day(5), day(4)], [day(3), last]):
        with pytest.raises(ValueError, match=message):
            open_source(settings(tmp_path, test=days))


HOUR = datetime.timedelta(hours=1)


def hourly(folder, offset="", **changes):
    """Returns thirty hours over two days, from 20:00 on."""
    first = datetime.datetime(2001, 2, 27, 20)
    content = ["date,rain,warmth,flow"]
    content += [f"{(first + n * HOUR).isoformat()}{offset},{n},0,1" for n in range(30)]
    changes = {"inputs": ["rain"], "window": 2, "validation": [day(2), day(2)], **changes}
    return open_source(settings(folder, content, **changes))


@pytest.mark.parametrize(
    ("period", "steps"),
    [
        ([datetime.date(2001, 2, 27), datetime.date(2001, 2, 27)], range(4)),
        ([datetime.date(2001, 2, 28), datetime.date(2001, 2, 28)], range(4, 28)),
        ([datetime.datetime(2001, 2, 27, 21), datetime.datetime(2001, 2, 28)], range(1, 5)),
        ([datetime.datetime(2001, 2, 28, 23, 30), datetime.datetime(2001, 3, 1, 1)], [28, 29]),
    ],
)
def test_a_period_is_given_as_dates_or_as_times(tmp_path, period, steps):
    """A last date includes the whole day."""
    source = hourly(tmp_path, train=period)
    assert source.count("train") == len(steps)
    inputs, _ = rows(source, "train")
    assert inputs[-len(steps) :, 0].tolist() == list(steps)


def test_a_period_may_have_an_offset_if_the_file_has_one(tmp_path):
    zone = datetime.timezone(3 * HOUR)
    period = [datetime.datetime(2001, 2, 27, hour, tzinfo=zone) for hour in (23, 23)]
    inputs, _ = rows(hourly(tmp_path, "+01:00", train=period), "train")
    assert inputs[-1].tolist() == [1], "23:00+03:00 is 21:00+01:00"
    with pytest.raises(
        ValueError, match="`data.train` must not have an offset from UTC: the dates"
    ):
        hourly(tmp_path, train=period)


def test_periods_of_months(tmp_path):
    content = ["date,rain,warmth,flow", *(f"2001-{n:02d},{n},0,1" for n in range(1, 13))]
    changes = {"inputs": ["rain"], "window": 2, "step": "1 month"}
    changes["train"] = [datetime.date(2001, 2, 1), datetime.date(2001, 4, 30)]
    changes["validation"] = [datetime.date(2001, 12, 1), datetime.date(2001, 12, 31)]
    source = open_source(settings(tmp_path, content, **changes))
    assert rows(source, "train")[0][1:, 0].tolist() == [2, 3, 4]
    assert source.count("validation") == 1


def test_degree_days_need_daily_data(tmp_path):
    with pytest.raises(
        ValueError, match="`data.snow` computes degree days: .*1 day. Received: 1 hour"
    ):
        hourly(tmp_path, train=[day(1), day(1)], inputs=["rain", "warmth"], snow=["rain", "warmth"])


def test_an_unreadable_file_is_reported(tmp_path):
    wanted = settings(tmp_path)
    wanted.file = str(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="nowhere.csv: cannot be read: No such file"):
        open_source(wanted)
    wanted.file = str(tmp_path / "latin.csv")
    (tmp_path / "latin.csv").write_bytes(b"d\xe9te,warmth\n")
    message = "latin.csv, line 1: .*Missing: date, .*; the line is not UTF-8."
    with pytest.raises(ValueError, match=message):
        open_source(wanted)
    (tmp_path / "latin.csv").write_text("date,warmth,rain,flow\n")
    with pytest.raises(ValueError, match="must have a line for each step. Received: none."):
        open_source(wanted)
