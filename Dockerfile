# The container image of the action. Building it needs BuildKit (the default since Docker 23) and nothing else.

# The tag is for people, the digest (of the index for all platforms) is what is pulled.
ARG BASE=python:3.14-slim@sha256:e11c17f46f87983eb946b121694dedba6290ee2b0dd5294d137d82943502d179

FROM ${BASE} AS build

# What is installed: `runtime` is everything, `http` leaves out models, MCP and what reads Inspect's logs.
ARG LOCK=runtime

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore

WORKDIR /src

# Debian's, with its fixes of the day: a pinned version is gone from its mirrors with the next one.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends git && \
    rm -rf /var/lib/apt/lists/*

# What the image holds is this one folder. It gets no pip of its own: the one of the base image fills it from outside.
RUN python -m venv --without-pip /opt/gate

# Dependencies first: they change less often than our code. Wheels only, so that nothing is compiled or run while
# installing. A machine that reaches its packages in its own way passes its pip.conf as a secret: it leaves no trace.
COPY requirements requirements
RUN --mount=type=secret,id=pipconf,target=/etc/pip.conf \
    python requirements/install.py --python /opt/gate/bin/python "requirements/${LOCK}.txt" \
      --only-binary :all: --no-compile

# What builds our own package comes from the lock as well, only these few of it, and stays in this stage. Should the
# list fall short one day, `pip check` refuses it.
RUN --mount=type=secret,id=pipconf,target=/etc/pip.conf \
    awk '/^[^ ]/ { wanted = /^(hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==/ } wanted' \
      requirements/dev.txt > build.txt && \
    python -m venv --without-pip /opt/build && \
    python requirements/install.py --python /opt/build/bin/python build.txt --only-binary :all:

COPY pyproject.toml README.md LICENSE ./
COPY examples/weather examples/weather
COPY runner runner
# Installed for good, not as a link into a checkout: `python -I` looks at nothing but what is installed.
# hadolint ignore=DL3013
RUN pip --python /opt/build/bin/python wheel --no-index --no-deps --no-build-isolation --wheel-dir dist . && \
    pip --python /opt/gate/bin/python install --no-index --find-links dist --no-deps --no-compile agent-eval-gate

COPY image/smaller.py .
# Left out: other packages' programs and the scripts that activate a venv, which nothing here calls, and what only
# debuggers read of compiled modules. Dependencies keep their tests and type stubs: without them the image would be one
# percent smaller.
# Bytecode is made here, once (-f: also where pip left some), and templates are compiled: at run time nobody keeps
# either. unchecked-hash: bytecode is used whatever the files' times are.
# `python -I` also for who calls the program by its name: their PYTHONPATH has no say in what runs.
RUN python smaller.py /opt/gate/lib && \
    find /opt/gate/bin -type f ! -name eval-gate -delete && \
    sed -i '1s,$, -I,' /opt/gate/bin/eval-gate && \
    /opt/gate/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/gate/lib && \
    /opt/gate/bin/python -I -c "from eval_gate.reports.template_compilation import compile_templates; compile_templates()"


# No USER: the runner mounts folders that only root may write. No WORKDIR: the runner names one, the user's checkout.
FROM ${BASE}

# git reads the objects of a commit, whose hashes we check, and tells what changed in a workspace. All that is called is
# in this one program: its package would bring Perl.
COPY --from=build /usr/bin/git /usr/bin/git

LABEL org.opencontainers.image.title="Eval Gate" \
      org.opencontainers.image.description="Did this change break anything your LLM agent could do yesterday?" \
      org.opencontainers.image.licenses="MIT"

# Not for our own program (-I ignores both, and its bytecode is there) but for an agent that it starts in the checkout:
# its output comes as it is written, and it leaves no folders there that only root can remove.
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

COPY --from=build /opt/gate /opt/gate
# For `docker run --entrypoint eval-gate`. The venv itself stays off PATH: an agent's `python` is not ours.
COPY --from=build /opt/gate/bin/eval-gate /usr/local/bin/eval-gate

COPY LICENSE THIRD_PARTY_NOTICES.md /usr/share/doc/eval-gate/

# A list, no shell: a shell drops variables whose names hold a hyphen, and inputs have such names (INPUT_FAIL-ON).
# -I: the checkout may hold a folder `eval_gate` of its own, or a module named like one of ours.
ENTRYPOINT ["/opt/gate/bin/python", "-I", "-m", "eval_gate", "action"]
