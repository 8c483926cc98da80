import lightkurve as lk
import transitleastsquares as tls
from transitleastsquares import transit_mask


def find(time, flux, error):
    lc = lk.LightCurve(time=time, flux=flux, flux_err=error).remove_outliers(sigma=3).flatten()
    search = tls.transitleastsquares(lc.time.value, lc.flux.value, lc.flux_err.value)
    rough = search.power(show_progress_bar=False)
    first = search.power(period_min=rough.period * 0.95, period_max=rough.period * 1.05)
    mask = transit_mask(lc.time.value, first.period, first.duration, first.T0)
    rest = lc[~mask]
    second = tls.transitleastsquares(rest.time.value, rest.flux.value, rest.flux_err.value).power()
    return first.period, second.period
