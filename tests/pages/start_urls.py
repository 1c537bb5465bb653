"""The console's addresses with those of the refund example, as where its agent is configured."""

from __future__ import annotations

from django.urls import include, path

from console.urls import handler400, handler403, handler404, handler500
from console.urls import urlpatterns as console_patterns

__all__ = ["handler400", "handler403", "handler404", "handler500"]

urlpatterns = [*console_patterns, path("", include("examples.refunds.urls"))]
