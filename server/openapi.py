"""The OpenAPI document of the application: made from its routes, completed with models, roles and problems.

`docs/openapi.json` is this document; `python -m server.write_openapi docs/openapi.json` writes it, a test compares.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from server import wire
from server.auth import access_of
from server.wire.requests import RequestModel

__all__ = ["cached_document", "document_text", "openapi_document", "request_models"]


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: schemas of requests, answers and problems, who may call, and examples."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    enforced = request_models()
    _, schemas = models_json_schema(
        [(model, "validation" if model in enforced else "serialization") for model in _models()],
        ref_template="#/components/schemas/{model}",
    )
    components = document.setdefault("components", {})
    # Errors of the framework never reach a caller: they are sent as problems.
    components["schemas"] = dict(sorted(schemas["$defs"].items()))
    components["securitySchemes"] = {
        "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key of this server: ngk_..., or a token"}
    }
    for route in app.routes:
        assert isinstance(route, APIRoute)
        access = access_of(route)
        assert access is not None
        for method in route.methods or ():
            operation = document["paths"][route.path_format][method.lower()]
            _drop_framework_errors(operation)
            # The framework leaves null members of examples out; they are part of our answers.
            for status, response in route.responses.items():
                operation["responses"][str(status)] = {"description": "", **response}
            if access.allowed:
                operation["security"] = [{"apiKey": []}]
                operation["x-roles"] = sorted(access.allowed)
            else:
                operation["security"] = []
            if operation["operationId"] == "createQuery":
                # Programs that let people try operations ask first where an estimate reports the price.
                operation["x-spends"] = True
                operation.setdefault("parameters", []).append(
                    {
                        "name": "Idempotency-Key",
                        "in": "header",
                        "required": False,
                        "description": "A fresh text for every new question; the same text never charges twice.",
                        "schema": {"type": "string", "pattern": "^[\\x21-\\x7e]{1,200}$"},
                    }
                )
    return document


def request_models() -> list[type[BaseModel]]:
    """The models of request bodies."""
    return [model for model in _models() if issubclass(model, RequestModel)]


def _models() -> list[type[BaseModel]]:
    """The models that the modules of server/wire offer."""
    modules = [
        importlib.import_module(f"{wire.__name__}.{found.name}") for found in pkgutil.iter_modules(wire.__path__)
    ]
    offered = [getattr(module, name) for module in modules for name in module.__all__]
    return [one for one in offered if isinstance(one, type) and issubclass(one, BaseModel)]


def _drop_framework_errors(operation: dict[str, Any]) -> None:
    for response in operation["responses"].values():
        content = response.get("content", {})
        if "application/problem+json" in content:
            content.pop("application/json", None)


def cached_document(app: FastAPI) -> dict[str, Any]:
    """The document, made once per application."""
    if app.openapi_schema is None:
        app.openapi_schema = openapi_document(app)
    return app.openapi_schema


def document_text(app: FastAPI) -> str:
    """The document as it is kept: two spaces, one newline at the end."""
    return json.dumps(openapi_document(app), indent=2, ensure_ascii=False) + "\n"
