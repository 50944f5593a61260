# One image for every role: the command names the role. Build it with: docker build -t shoal .
# .dockerignore lists the files that a build can see.

# The pinned packages. pip and uv stay in an environment of their own that the image leaves behind.
FROM python:3.11-slim AS packages
WORKDIR /src
COPY requirements-bootstrap.txt requirements.txt ./
RUN python -m venv /opt/tools \
 && /opt/tools/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-bootstrap.txt \
 && python -m venv --without-pip /opt/shoal \
 && /opt/tools/bin/uv pip install --no-cache --compile-bytecode --python /opt/shoal/bin/python --require-hashes -r requirements.txt

# The wheel, with the web UI in it.
FROM packages AS wheel
COPY ui/requirements.txt ui/
RUN /opt/tools/bin/uv pip install --no-cache --python /opt/shoal/bin/python --require-hashes -r ui/requirements.txt
COPY . .
RUN /opt/tools/bin/uv pip install --no-cache --python /opt/shoal/bin/python --no-deps --no-build-isolation -e . \
 && /opt/shoal/bin/python ui/build.py \
 && /opt/tools/bin/uv build --no-cache --wheel --no-build-isolation --python /opt/shoal/bin/python --out-dir /wheel

# The environment: the pinned packages and the wheel, without the packages that only a build needs.
FROM packages AS environment
COPY --from=wheel /wheel /wheel
RUN /opt/tools/bin/uv pip install --no-cache --compile-bytecode --python /opt/shoal/bin/python --no-deps /wheel/*.whl \
 && /opt/tools/bin/uv pip uninstall --python /opt/shoal/bin/python hatchling editables

FROM python:3.11-slim
COPY --from=environment /opt/shoal /opt/shoal
RUN useradd --create-home --uid 10001 shoal && install -d -o shoal -g shoal -m 0700 /data
USER shoal
ENV PATH=/opt/shoal/bin:$PATH SHOAL_DATA=/data
VOLUME /data
# The API's port. By default the API listens on the container's loopback interface only.
EXPOSE 8765
ENTRYPOINT ["shoal"]
# No role is the default: `shoal up` would start a whole cluster that no published port reaches.
CMD ["--help"]
