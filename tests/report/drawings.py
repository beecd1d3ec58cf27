"""What a figure shows, read back from its picture and from its data."""

import xml.etree.ElementTree as ET

import vl_convert

SVG = "{http://www.w3.org/2000/svg}"


class Drawing:
    """An SVG, as what can be seen of it."""

    def __init__(self, figure):
        self.root = ET.fromstring(vl_convert.vegalite_to_svg(figure.spec("print")))

    def marks(self, kind):
        """The marks of every layer, panel by panel, those that are not seen left out."""
        groups = [g for g in self.root.iter(f"{SVG}g") if g.get("class", "").startswith(f"mark-{kind} role-mark")]
        return [[mark for mark in group if mark.get("opacity") != "0"] for group in groups]

    def count(self, kind):
        return sum(map(len, self.marks(kind)))

    def texts(self):
        return [found.text or "".join(found.itertext()) for found in self.root.iter(f"{SVG}text")]


def rows(figure, *needed):
    """The data of a figure, of those rows that have the fields."""
    found = figure.chart.to_dict(validate=False)["datasets"].values()
    [found] = [values for values in found if "row" in values[0]]
    return [row for row in found if all(row.get(name) is not None for name in needed)]


def place_of(mark):
    x, y = mark.get("transform").removeprefix("translate(").removesuffix(")").split(",")
    return float(y), float(x)
