from pycbc.filter import matched_filter
from pycbc.waveform import get_fd_waveform, get_td_waveform


def peak_td(conditioned, psd):
    hp, _ = get_td_waveform(approximant="SEOBNRv4_opt", mass1=30, mass2=28, delta_t=conditioned.delta_t, f_lower=18)
    hp.resize(len(conditioned))
    template = hp.cyclic_time_shift(hp.start_time)
    snr = matched_filter(template, conditioned, psd=psd, low_frequency_cutoff=18)
    return max(abs(snr.crop(8, 4)))


def peak_fd(conditioned, psd):
    hp, _ = get_fd_waveform(approximant="IMRPhenomD", mass1=30, mass2=28, delta_f=1.0 / conditioned.duration, f_lower=18)
    hp.resize(len(psd))
    snr = matched_filter(hp, conditioned, psd=psd, low_frequency_cutoff=18)
    return max(abs(snr.crop(4, 4)))
