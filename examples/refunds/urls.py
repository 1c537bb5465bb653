"""The address of the page that starts refund runs; included where the agent is configured."""

from __future__ import annotations

from django.urls import path

from examples.refunds import views

urlpatterns = [
    path("refunds/start/", views.start, name="start"),
    path("refunds/start/progress/", views.progress_of, name="start-progress"),
]
