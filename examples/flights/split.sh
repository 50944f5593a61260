#!/bin/sh
# Take one day out of the source data: flights, hourly weather and airline names.
#
#   SHOAL_PARAM_DATE    the day, YYYY-MM-DD
#   SHOAL_PARAM_SOURCE  folder with flights-*.csv.gz, weather-*.csv.gz and airlines.csv
#   SHOAL_PARAM_OUTPUT  folder of results; the day's rows go to <output>/<date>/raw/
#
# A file appears under its own name only when it is whole, so a reader of raw/ never sees half
# a file, and running a day again gives the same bytes. Exit status: 0 done, 1 the source is
# unusable or has no such day, 2 a parameter is missing or malformed.
set -eu

complain() { # STATUS MESSAGE
    printf 'fetch: %s\n' "$2" >&2
    exit "$1"
}

day=${SHOAL_PARAM_DATE-}
source=${SHOAL_PARAM_SOURCE-}
output=${SHOAL_PARAM_OUTPUT-}
case $day in
    [0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]) ;;
    *) complain 2 "the parameter date is '$day'; write it as YYYY-MM-DD, for example 2013-03-08" ;;
esac
[ -n "$source" ] || complain 2 "the parameter source is empty; name the folder of the source data"
[ -n "$output" ] || complain 2 "the parameter output is empty; name the folder for the results"
[ -d "$source" ] || complain 1 "there is no source folder '$source'"

raw=$output/$day/raw
mkdir -p "$raw"
# In the target folder, so that the final mv is a rename and nothing else.
partial=$(mktemp -d "$raw/.partial.XXXXXX")
# rmdir leaves folders alone that hold something: only a day that gave nothing disappears.
trap 'rm -rf "$partial"; rmdir "$raw" "$output/$day" 2>/dev/null || :' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

rows() { # FILE -> rows below the header
    awk 'END { print NR - 1 }' "$1"
}

take_day() { # TABLE FIRST_DATE_COLUMN (year; month and day stand in the next two)
    set -- "$1" "$2" "$source/$1"-*.csv.gz
    [ -f "$3" ] || complain 1 "there is no $1-*.csv.gz in '$source'"
    table=$1 column=$2
    shift 2
    # Without this a damaged file would pass for a short one: a pipe reports its last command only.
    gzip -t "$@" || complain 1 "a $table file in '$source' is damaged; restore it and run again"
    gzip -dc "$@" | awk -F, -v day="$day" -v table="$table" -v year="$column" '
        BEGIN { split(day, want, "-") }
        NR == 1 { print; header = $0; next }
        $0 == header { next }               # one header for each further file
        {
            date = sprintf("%04d-%02d-%02d", $year, $(year + 1), $(year + 2))
            if (first == "" || date < first) first = date
            if (date > last) last = date
        }
        $year == want[1] + 0 && $(year + 1) == want[2] + 0 && $(year + 2) == want[3] + 0 {
            print
            found++
        }
        END {
            if (!found) {
                printf "fetch: no %s on %s: the data covers %s to %s; choose a day in between\n",
                    table, day, first, last | "cat 1>&2"
                exit 1
            }
        }' >"$partial/$table.csv"
}

take_day flights 1
take_day weather 2
[ -f "$source/airlines.csv" ] || complain 1 "there is no airlines.csv in '$source'"
cp "$source/airlines.csv" "$partial/airlines.csv"

flights=$(rows "$partial/flights.csv")
weather=$(rows "$partial/weather.csv")
airlines=$(rows "$partial/airlines.csv")
for table in flights weather airlines; do
    mv -f "$partial/$table.csv" "$raw/$table.csv"
done
printf '%s: %d flights, %d hourly weather reports, %d airlines\n' \
    "$day" "$flights" "$weather" "$airlines"
printf 'written to %s\n' "$raw"
