MAX_RETRY_COUNT = 3


class Meter:
    def __init__(self, unit):
        self.__unit = unit

    @classmethod
    def default(cls):
        return cls("kWh")


def describe(shape, size):
    if shape == "circle":
        return "round " + str(size)
    elif shape == "square":
        return "even " + str(size)


def find_owner(meters, key):
    meter = meters.get(key)
    if meter is None:
        return None
    return meter.owner


def doubled_with_trace(xs):
    out = []
    for x in xs:
        out.append(x * 2)
        print("doubled", x * 2)
    return out


def total(xs):
    t = 0
    for x in xs:
        t += x
    return t


def numbered(xs):
    return [(x, i) for i, x in enumerate(xs)]


def save(meter):
    db.save(meter)
