"""Write scikit-learn's copy of the 8x8 digits as two gzipped IDX files beside this script.

Run with `pip install numpy scikit-learn` done; the output depends on nothing else.
"""

import gzip
import pathlib
import struct

from sklearn.datasets import load_digits

here = pathlib.Path(__file__).parent
digits = load_digits()
images = digits.images.astype("uint8")
labels = digits.target.astype("uint8")
assert images.shape == (1797, 8, 8) and images.max() == 16


def write(name, magic, array):
    header = struct.pack(f">I{array.ndim}I", magic, *array.shape)
    # A fixed time stamp and no file name, so that the same data give the same bytes.
    (here / name).write_bytes(gzip.compress(header + array.tobytes(), 9, mtime=0))


write("digits-images-idx3-ubyte.gz", 0x803, images)
write("digits-labels-idx1-ubyte.gz", 0x801, labels)
