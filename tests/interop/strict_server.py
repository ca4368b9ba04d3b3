# A server on jsonrpcserver, one request a line, over standard input and output. Methods: ping, add.
#
# SPDX-License-Identifier: Apache-2.0
import sys

from jsonrpcserver import Success, dispatch, method


@method
def ping():
    return Success("pong")


@method
def add(a, b):
    return Success(a + b)


for line in sys.stdin:
    answer = dispatch(line)
    if answer:
        print(answer, flush=True)
