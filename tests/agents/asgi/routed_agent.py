"""A FastAPI agent whose routes are in another file, and whose description names them. `routed_agent.py PORT`."""

import sys

import uvicorn
from fastapi import FastAPI
from routed.desk import router

app = FastAPI()
app.include_router(router)
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
