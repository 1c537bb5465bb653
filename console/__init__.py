"""The Django project, and the pages that belong to no single app."""

from __future__ import annotations

from console.celery import app as celery_app

__all__ = ["celery_app"]
