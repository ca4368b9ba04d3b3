# everywire in a container: `docker build -t everywire .`, then `docker run -v ./everywire.yaml:/etc/everywire/everywire.yaml everywire`.
# docs/packages.md tells how to let it be reached. tests/package/test_docker.py keeps this file true.
# SPDX-License-Identifier: Apache-2.0
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
        build-essential cmake ninja-build pkg-config libuv1-dev node-llhttp libwslay-dev libsqlite3-dev libyaml-dev libhiredis-dev libssl-dev python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY CMakeLists.txt CMakePresets.json CHANGELOG.md LICENSE ./
COPY cmake cmake
COPY docs/everywire.yaml docs/everywire.yaml
COPY include include
COPY packaging packaging
COPY src src
COPY tools tools
RUN cmake --preset release -DEW_TESTS=OFF -DEW_EXAMPLES=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    && cmake --build build/release \
    && DESTDIR=/out cmake --install build/release --component program --strip

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends libwslay1 libssl3 ca-certificates tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 everywire \
    && useradd --system --uid 10001 --gid everywire --home-dir /var/lib/everywire --create-home --shell /usr/sbin/nologin everywire
COPY --from=build /out/usr/bin/everywire /usr/bin/everywire
COPY packaging/everywire.yaml /etc/everywire/everywire.yaml
USER everywire
WORKDIR /var/lib/everywire
ENV XDG_STATE_HOME=/var/lib EVERYWIRE_SANDBOX=auto
VOLUME /var/lib/everywire
EXPOSE 3400
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["everywire", "list", "http://127.0.0.1:3400", "--json", "--timeout", "3s"]
ENTRYPOINT ["everywire"]
CMD ["serve", "--config", "/etc/everywire/everywire.yaml"]
