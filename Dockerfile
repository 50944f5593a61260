# One image for every role; the command says which. Build: docker build -t shoal .
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements-bootstrap.txt requirements.txt ./
RUN python -m venv /opt/shoal \
 && /opt/shoal/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-bootstrap.txt \
 && /opt/shoal/bin/uv pip install --no-cache --compile-bytecode --python /opt/shoal/bin/python --require-hashes -r requirements.txt
COPY pyproject.toml README.md ./
COPY core core
COPY runtime runtime
COPY coordination coordination
COPY sql sql
COPY proto proto
COPY master master
COPY worker worker
COPY api api
COPY client client
RUN /opt/shoal/bin/uv pip install --no-cache --compile-bytecode --python /opt/shoal/bin/python --no-deps --no-build-isolation .

FROM python:3.11-slim
COPY --from=build /opt/shoal /opt/shoal
RUN useradd --create-home --uid 10001 shoal && install -d -o shoal -g shoal -m 0700 /data
USER shoal
ENV PATH=/opt/shoal/bin:$PATH SHOAL_DATA=/data
VOLUME /data
ENTRYPOINT ["shoal"]
CMD ["up"]
