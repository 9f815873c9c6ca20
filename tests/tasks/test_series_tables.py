"""CSV files of series: dates, steps, signs and gaps, for whole files and line by line."""

import datetime
import itertools
import math
import zoneinfo

import numpy as np
import pytest

from keras_transformer.tasks.time_series.dates import needs_order, parse_date
from keras_transformer.tasks.time_series.file import read_series
from keras_transformer.tasks.time_series.gaps import fill_gaps
from keras_transformer.tasks.time_series.lines import read_targets
from keras_transformer.tasks.time_series.reader import SeriesReader
from keras_transformer.tasks.time_series.steps import TimeStep, find_step
from keras_transformer.tasks.time_series.table_format import TableFormat

NAN = math.nan
DAY, HOUR = datetime.timedelta(days=1), datetime.timedelta(hours=1)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


# Dates


@pytest.mark.parametrize(
    ("form", "order"),
    [
        ("%Y-%m-%d", None), ("%Y/%m/%d", None), ("%Y%m%d", None), ("%d.%m.%Y", None),
        ("%d/%m/%Y", "day_first"), ("%m/%d/%Y", "month_first"), ("%d-%m-%Y", "day_first"),
        ("%m-%d-%Y", "month_first"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("time", ["", " %H:%M", "T%H:%M:%S", " %H:%M:%S.%f"])
def test_dates_equal_those_of_the_standard_library(form, order, time):
    first = datetime.datetime(1999, 12, 25)
    for number in range(40):
        date = first + number * (DAY + (17 * HOUR + HOUR / 7200 if time else 0 * HOUR))
        text = date.strftime(form + time)
        expected = datetime.datetime.strptime(text, form + time)
        moment = parse_date(text, order)
        assert (moment.local, moment.offset) == (expected, None), text
        assert needs_order(text) == (order is not None)
        assert (parse_date(text) is None) == (order is not None)


def test_short_dates_and_offsets():
    assert parse_date("2005-08").local == datetime.datetime(2005, 8, 1)
    assert parse_date("2005").local == datetime.datetime(2005, 1, 1)
    assert parse_date("3.4.2005").local == datetime.datetime(2005, 4, 3)
    for text, hours in (("Z", 0), ("+01:00", 1), ("-0530", -5.5), ("+02", 2), (" +01:00", 1)):
        moment = parse_date(f"2005-08-31T14:00{text}")
        assert moment.offset == hours * HOUR
        assert moment.instant == datetime.datetime(2005, 8, 31, 14) - hours * HOUR


@pytest.mark.parametrize(
    "text",
    ["", "x", "2005-02-29", "2005-13-01", "31.04.2005", "2005-08-31T24:00", "2005-08-31T14",
     "2005-08-31 14:60", "31/08-2005", "05-08-31", "31.08.05", "2005-08-31T14:00+25:00", "٢005-08",
     "2005-08-31x", " 2005-08-31", "2005-8-31-1", "1/2/3", "0000-01-01", "0001-01-01T00:00+02:00"],
)  # fmt: skip
def test_other_texts_are_not_dates(text):
    assert parse_date(text, "day_first") is None


# Steps


def moments(*texts):
    return [parse_date(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("15 minutes", ["2005-08-31 23:45", "2005-09-01 00:00", "2005-09-01 00:15"]),
        ("1 hour", ["2005-03-27T01:00+01:00", "2005-03-27T03:00+02:00", "2005-03-27T04:00+02:00"]),
        ("1 hour", ["2005-10-30T02:00+02:00", "2005-10-30T02:00+01:00", "2005-10-30T03:00+01:00"]),
        ("1 day", ["2005-03-26T00:00+01:00", "2005-03-27T00:00+01:00", "2005-03-28T00:00+02:00"]),
        ("1 day", ["2005-03-26T01:00+01:00", "2005-03-27T01:00+01:00", "2005-03-28T02:00+02:00"]),
        ("7 days", ["2005-02-21", "2005-02-28", "2005-03-07"]),
        ("1 month", ["2005-12-01", "2006-01-01", "2006-02-01"]),
        ("1 month", ["2005-12-31", "2006-01-31", "2006-02-28"]),
        ("1 month", ["2005-12-30", "2006-01-30", "2006-02-28", "2006-03-30"]),
        ("3 months", ["2005-11", "2006-02", "2006-05"]),
        ("1 year", ["2004-02-29", "2005-02-28", "2006-02-28"]),
        ("1 year", ["2004", "2005"]),
        ("500 milliseconds", ["2005-08-31 14:00:00.0", "2005-08-31 14:00:00.5"]),
    ],
)
def test_the_step_of_a_series_is_detected(text, dates):
    series = moments(*dates)
    step = find_step(series)
    assert str(step) == text and TimeStep.parse(text) == step
    assert [step.between(*pair) for pair in itertools.pairwise(series)] == [1] * (len(dates) - 1)
    assert step.between(series[-1], series[0]) <= 1 - len(dates)


def test_the_step_is_the_most_common_one():
    series = moments("2005-01-01", "2005-01-04", "2005-01-05", "2005-01-06")
    step = find_step(series)
    assert str(step) == "1 day" and step.between(*series[:2]) == 3
    assert step.between(*moments("2005-01-01", "2005-01-02T00:30")) is None
    assert str(find_step(moments("2005-01-01"))) == "1 day"


def test_the_next_step_of_the_calendar():
    for before, after in (("2004-12-31", "2005-01-31"), ("2005-01-31", "2005-02-28")):
        assert TimeStep(months=1).after(*moments(before)) == moments(after)[0]
    assert TimeStep.parse("2 weeks").after(*moments("2005-02-21")) == moments("2005-03-07")[0]
    for step in ("1 day", "1 month", "10000 years"):  # the last year has no next step
        assert TimeStep.parse(step).after(*moments("9999-12-31")).local == datetime.datetime.max


@pytest.mark.parametrize("text", ["", "daily", "0 days", "1.5 hours", "1 fortnight", "-1 day"])
def test_other_steps_are_refused(text):
    with pytest.raises(ValueError, match='`step` must be a number and one of .*such as "15 min'):
        TimeStep.parse(text)


# Gaps


def test_gaps_are_filled_up_to_the_limit():
    values = np.array([[1, NAN, 3], [NAN, 2, NAN], [NAN, 4, NAN], [4, NAN, NAN], [5, 8, 7]])
    np.testing.assert_array_equal(
        fill_gaps(values, "forward", 2),
        [[1, NAN, 3], [1, 2, NAN], [1, 4, NAN], [4, 4, NAN], [5, 8, 7]],
    )
    np.testing.assert_allclose(
        fill_gaps(values, "linear", 3), [[1, NAN, 3], [2, 2, 4], [3, 4, 5], [4, 6, 6], [5, 8, 7]]
    )
    assert math.isnan(fill_gaps(values, "forward", 2)[3, 2])
    ends = np.array([[1], [NAN]])
    assert fill_gaps(ends, "forward", 1).tolist() == [[1], [1]]
    assert math.isnan(fill_gaps(ends, "linear", 1)[1, 0])


# Whole files


def written(folder, lines, end="\n", name="x.csv"):
    path = folder / name
    lines = (line if isinstance(line, bytes) else line.encode() for line in lines)
    path.write_bytes(b"".join(line + end.encode() for line in lines))
    return path


def read(folder, lines, **options):
    return read_series(written(folder, lines), ["rain", "warmth"], "flow", "date", **options)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize(
    ("form", "order"), [("%Y-%m-%dT%H:%M", None), ("%d/%m/%Y", "day_first"), ("%m/%d/%Y", "month_")]
)
def test_separators_and_date_formats_are_detected(tmp_path, separator, decimal, form, order):
    """For all signs, with columns in another order and quotes where they are needed."""
    first, rows = datetime.datetime(2005, 8, 28), []
    values = np.array([[0.5, -1.25, 7], [10, 2.5, NAN], [0, 1e-3, 3.5], [1, 2, 3], [4, 5, 6.75]])
    quote = '"{}"'.format if decimal == separator else str
    for number, row in enumerate(values):
        texts = ["" if math.isnan(v) else quote(str(v).replace(".", decimal)) for v in row]
        date = (first + number * DAY).strftime(form)
        rows.append(separator.join([texts[1], f' "a{separator}b" ', texts[2], date, texts[0]]))
    header = separator.join(["warmth", '"no""te"', "flow", "date", "rain"])
    series = read(tmp_path, [header, *rows])
    np.testing.assert_array_equal(series.inputs, values[:, :2].astype("float32"))
    np.testing.assert_array_equal(series.target, values[:, 2].astype("float32"))
    assert [moment.local for moment in series.moments] == [first + n * DAY for n in range(5)]
    table = series.table
    assert (table.separator, table.decimal, table.step) == (separator, decimal, "1 day")
    assert (table.date_order or "").startswith(order or "") and table.filled == 0


def lines_of(dates, rows=None, separator=",", note="x"):
    rows = rows or [f"{n},{-n},{n + 0.5}" for n in range(len(dates))]
    header = "date,rain,warmth,flow,note".replace(",", separator)
    return [header, *(f"{d},{row},{note}" for d, row in zip(dates, rows, strict=True))]


def test_hours_across_a_change_of_clock(tmp_path):
    first = datetime.datetime(2005, 10, 29, 12, tzinfo=datetime.UTC)
    dates = [(first + n * HOUR).astimezone(BERLIN).isoformat() for n in range(24)]
    assert len({date[:13] for date in dates}) == 23
    series = read(tmp_path, lines_of(dates))
    assert series.table.step == "1 hour" and len(series.moments) == 24
    local = [date[:16] for date in dates]
    with pytest.raises(ValueError, match="line 15: every line must be 1 hour after .*set back, "):
        read(tmp_path, lines_of(local))
    with pytest.raises(ValueError, match="line 3: either all dates must have an offset .* or none"):
        read(tmp_path, lines_of([dates[0], local[1]]))


def test_an_ambiguous_order_of_day_and_month_is_refused(tmp_path):
    dates = [f"{n:02d}/02/2005" for n in range(1, 4)]
    with pytest.raises(ValueError, match="line 2: '01/02/2005' is 2005-02-01 or 2005-01-02, and "):
        read(tmp_path, lines_of(dates))
    assert read(tmp_path, lines_of(dates), date_order="day_first").table.step == "1 day"
    assert read(tmp_path, lines_of(dates), date_order="month_first").table.step == "1 month"
    # A later line, or the steps themselves, show the order.
    series = read(tmp_path, lines_of([*dates, *(f"{n:02d}/02/2005" for n in range(4, 15))]))
    assert series.table.date_order == "day_first"
    months = [f"{n:02d}/02/2005" for n in range(1, 13)] + ["01/02/2006", "02/02/2006"]
    assert read(tmp_path, lines_of(months)).table.date_order == "month_first"


def test_a_wrong_date_in_an_ambiguous_column_is_reported(tmp_path):
    dates = ["29/08/2005", "30/08/2005", "31/09/2005", "01/09/2005"]
    message = "line 4: the date must look like .*, or 31/08/2005, with the day first. Rec.*'31/09/"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, lines_of(dates))


@pytest.mark.parametrize(
    ("rows", "separator", "message"),
    [
        (["1.5", "2,5"], ";", "line 3: numbers must have one decimal sign, .*'2,5' here and '1.5'"),
        (
            ["1,234", "2"],
            ";",
            "line 2: '1,234' is 1.234 or 1234, and no other number shows",
        ),
        (["1,234", "2"], "\t", "line 2: '1,234' is 1.234 or 1234, .*Set `data.decimal` to ','"),
        (["12.345", "2"], ";", "line 2: '12.345' is 12.345 or 12345, .*Set `data.decimal` to '.'"),
        (["1.234,5", "2"], ";", "line 2: numbers must have one decimal sign"),
        (["1,234,567", "2,5"], ";", "line 2: rain must be a number. Received: '1,234,567'."),
    ],
)
def test_signs_that_may_separate_thousands_are_refused(tmp_path, rows, separator, message):
    lines = [separator.join(["date", "rain", "warmth", "flow"])]
    lines += [
        separator.join([f"2005-08-{n}", row, "1", "2"]) for n, row in enumerate(rows, start=30)
    ]
    with pytest.raises(ValueError, match=message):
        read(tmp_path, lines)


def test_a_given_decimal_sign_decides(tmp_path):
    lines = ["date;rain;warmth;flow", "2005-08-31;1,234;0;2", "2005-09-01;-0;1;"]
    assert read(tmp_path, lines, decimal=",").inputs[0, 0] == np.float32(1.234)
    with pytest.raises(ValueError, match="line 2: rain must be .*'1,234', and the decimal sign is"):
        read(tmp_path, lines, decimal=".")


def test_unused_columns_may_contain_anything(tmp_path):
    lines = ["note,date,rain,warmth,flow,note", '1_0,2005-08-31,0,1,2,"', ",2005-09-01,3,4,5,nan"]
    lines = [line.encode() for line in lines]
    latin = lines[1].replace(b"1_0", b"d\xe9bit")
    assert read(tmp_path, [lines[0], latin, lines[2]]).inputs.tolist() == [[0, 1], [3, 4]]
    with pytest.raises(ValueError, match=r"line 2: rain must be UTF-8. Received: b'\\xe9'."):
        read(tmp_path, [lines[0], lines[1].replace(b",0,", b",\xe9,"), lines[2]])


GAPS = ["2005-08-28 00:00", "2005-08-28 06:00", "2005-08-29 00:00", "2005-08-29 06:00"]


def test_gaps_of_a_file_are_filled_and_counted(tmp_path):
    lines = lines_of(GAPS, ["1,10,0", "2,20,1", "8,,2", "9,40,3"])
    series = read(tmp_path, lines, fill="linear", fill_limit=3)
    np.testing.assert_allclose(series.inputs[:, 0], [1, 2, 4, 6, 8, 9])
    np.testing.assert_allclose(series.inputs[:, 1], [10, 20, 25, 30, 35, 40])
    np.testing.assert_array_equal(series.target, [0, 1, NAN, NAN, 2, 3])
    assert series.table.step == "6 hours" and series.table.filled == 3
    assert str(series.moments[3]) == "2005-08-28T18:00:00"
    again = read(tmp_path, lines, fill="forward", fill_limit=3)
    np.testing.assert_array_equal(
        again.inputs, [[1, 10], [2, 20], [2, 20], [2, 20], [8, 20], [9, 40]]
    )


@pytest.mark.parametrize(
    ("fill", "limit", "rows", "message"),
    [
        (None, 1, None, "line 4: every line must be 6 hours after the previous one, here 2005-08-"
         "28T12:00:00. Received: 2005-08-29. `data.fill` fills gaps."),
        ("forward", 1, None, "line 4: 2 steps are missing before it, and `data.fill_limit` is 1."),
        ("forward", 2, ["1,1,1", "1,1,1", ",1,1", "1,1,1"], "line 4: rain is empty and cannot be "
         "filled: there must be a value before, and at most 2 steps without"),
        ("linear", 2, ["1,1,1", "1,1,1", "1,1,1", "1,,1"], "line 5: warmth is empty and cannot be f"
         "illed: there must be a value before and after"),
        ("forward", 2, [",1,1", "1,1,1", "1,1,1", "1,1,1"], "line 2: rain is empty and cannot be"),
        (None, 2, ["1,1,1", ",1,1", "1,1,1", "1,1,1"], "line 3: rain must be a number. Rec.*: ''"),
    ],
)  # fmt: skip
def test_gaps_that_are_not_filled_are_reported(tmp_path, fill, limit, rows, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, lines_of(GAPS, rows), fill=fill, fill_limit=limit)


def test_a_step_other_than_the_given_one_is_refused(tmp_path):
    with pytest.raises(ValueError, match="line 3: every line must be 1 hour after the previous"):
        read(tmp_path, lines_of(["2005-08-30", "2005-08-31"]), step="1 hour")


# Line by line


def steps(lines, table, inputs=("rain", "warmth")):
    reader, rows = SeriesReader(inputs, table), []
    for number, line in enumerate(lines, start=1):
        if number > 1 or not reader.read_header(line):
            rows.append(reader.read(line, f"line {number}"))
    return rows, reader.filled


@pytest.mark.parametrize("fill", ["forward", "linear"])
def test_a_file_is_read_line_by_line_as_in_whole(tmp_path, fill):
    rows = ["1,10,0", "2,20,1", "8,30,2", f"{'' if fill == 'forward' else 9},40,3"]
    lines = [line.replace(",", ";").replace(".", ",") for line in lines_of(GAPS, rows)]
    whole = read(tmp_path, lines, fill=fill, fill_limit=2)
    assert whole.table.separator == ";"
    parts, filled = steps(lines, whole.table)
    np.testing.assert_allclose(np.concatenate(parts), whole.inputs, rtol=1e-6)
    assert [len(part) for part in parts] == [1, 1, 3, 1]
    assert filled == whole.table.filled == (3 if fill == "forward" else 2)


TABLE = TableFormat(separator=";", decimal=",", date_column="date", step="1 day")


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (["1,5;2"], [[1.5, 2]]),  # without a header, as in training
        (["warmth;rain", "1,5;2"], [[2, 1.5]]),
        (["warmth\tnote\train", "1,5\tx\t2"], [[2, 1.5]]),  # another separator in the header
        (['"warmth","rain"', '"1,5",2'], [[2, 1.5]]),
        # Dates in another format are not read.
        (["when;rain;warmth", "x;1;2", "x;3;4"], [[1, 2], [3, 4]]),
        (["date;rain;warmth", "2005-02-28;1;2", "01.03.2005;3;4"], [[1, 2], [3, 4]]),
    ],
)
def test_lines_are_read_like_the_training_data(lines, rows):
    assert np.concatenate(steps(lines, TABLE)[0]).tolist() == rows


def test_a_single_column_may_have_only_the_decimal_sign():
    assert steps(["rain", "1,5"], TABLE, ("rain",))[0][0].tolist() == [[1.5]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1.5;2"], "line 1: rain must be a number. Received: '1.5', and the decimal sign is a"),
        (["1_0;2"], "line 1: rain must be a number. Received: '1_0'."),
        (["rain;rain;warmth"], "line 1: the column rain must occur once. Received: columns 1 "),
        (["date;rain;warmth;date"], "line 1: the column date must occur once."),
        (["date;rain;warmth", "2005-08-30;1;2", "2005-09-01;1;2"], "line 3: every line must be 1 da"
         "y after the previous one, here 2005-08-31. Received: 2005-09-01."),
        (["date;rain;warmth", "02/03/2005;1;2"], "line 2: the date must look like 2005-08-31, "),
        (["rain;warmth", "\udce9;1"], r"line 2: rain must be UTF-8. Received: b'\\xe9'."),
    ],
)  # fmt: skip
def test_a_wrong_line_is_reported(lines, message):
    with pytest.raises(ValueError, match=message):
        steps(lines, TABLE)


def test_linear_filling_is_refused_as_it_needs_the_next_line():
    table = TableFormat(fill="linear", fill_limit=2)
    with pytest.raises(ValueError, match="line 2: rain must be a number. Received: ''."):
        steps(["1,2", ",3"], table)


@pytest.mark.parametrize(
    "lines",
    [
        ["date,rain", "2005-08-01,1", "2005-08-02,", "2005-08-05,"],
        ["date,rain", "2005-08-01,1", "2005-08-02,", "2005-08-05,2"],
        ["date,rain", "2005-08-01,", "2005-08-02,1"],
    ],
)
def test_empty_cells_and_missing_lines_are_one_gap(tmp_path, lines):
    table = TableFormat(date_column="date", step="1 day", fill="forward", fill_limit=2)
    with pytest.raises(ValueError, match="rain is empty up to here and cannot be filled: .*most 2"):
        steps(lines, table, ("rain",))
    path = written(tmp_path, [f"{line},{'flow' if line == lines[0] else 1}" for line in lines])
    with pytest.raises(ValueError, match="rain is empty and cannot be filled: .*at most 2 steps"):
        read_series(path, ["rain"], "flow", "date", step="1 day", fill="forward", fill_limit=2)


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (["1,5", "", "2"], [1.5, NAN, 2]),
        (["flow", "1,5"], [NAN, 1.5]),
        (["Abfluss", "1,5"], [NAN, 1.5]),
        (["date;flow;x", "2005;1,5;\udce9"], [NAN, 1.5]),
    ],
)
def test_references_are_numbers_or_empty(lines, values):
    np.testing.assert_array_equal(read_targets(lines, "flow", TABLE), values)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1", "x"], "reference, line 2: flow must be a number or empty. Received: 'x'."),
        (["flow", "1_0"], "reference, line 2: flow must be a number or empty. Received: '1_0'."),
        (
            ["1;2"],
            "reference, line 1: must contain only flow, or line 1 must be a header with this",
        ),
        (["flow;flow"], "reference, line 1: the column flow must occur once"),
    ],
)
def test_wrong_references_are_reported(lines, message):
    with pytest.raises(ValueError, match=message):
        read_targets(lines, "flow", TABLE)


@pytest.mark.parametrize("name", ["separator", "decimal", "date_order", "fill"])
def test_other_formats_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must be one of .*Received: {name}='x'"):
        TableFormat(**{name: "x"})
