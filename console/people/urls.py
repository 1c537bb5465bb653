"""The addresses of people, groups, organisations and one's own settings."""

from __future__ import annotations

from django.urls import path

from console.people import endings, groups, organisations, people, preferences, saved, settings

urlpatterns = [
    path("people/", people.people_list, name="people"),
    path("people/new/", people.person_new, name="person-new"),
    path("people/<uuid:person_id>/", people.person_page, name="person"),
    path("people/<uuid:person_id>/end/<slug:what>/", endings.person_end, name="person-end"),
    path("groups/", groups.group_list, name="groups"),
    path("groups/<int:group_id>/", groups.group_page, name="group"),
    path("organisations/", organisations.organisation_list, name="organisations"),
    path("organisations/<slug:slug>/", organisations.organisation_page, name="organisation"),
    path("settings/", settings.settings_page, name="settings"),
    path("settings/theme/", preferences.theme, name="settings-theme"),
    path("settings/views/", saved.views_change, name="settings-views"),
    path("inbox/views/new/", saved.view_new, name="view-new"),
    path("language/", preferences.language, name="language"),
    path("settings/password/", settings.password_page, name="settings-password"),
    path("settings/session/", settings.end_session, name="settings-session"),
    path("settings/second-factor/", settings.factor_page, name="settings-factor"),
    path("settings/second-factor/picture.svg", settings.factor_picture, name="settings-factor-picture"),
    path("settings/second-factor/codes/", settings.codes_page, name="settings-factor-codes"),
]
